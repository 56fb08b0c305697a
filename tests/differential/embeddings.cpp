#include <torch/utils.h>

#include "differential/ops.h"
#include "posenc/positions/functional/embed.h"
#include "posenc/positions/functional/pad_sequences.h"
#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/position_embedding.h"
#include "posenc/positions/nn/timestep_embedding.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/positions/sinusoid/preset.h"

namespace posenc::differential {
namespace {

Scale scale_of(const Json& scale) {
  if (scale.is_null()) return Scale::None;
  return scale.is_string() ? Scale::SqrtDim : Scale(scale.get<double>());
}

std::optional<int64_t> maybe(const Json& number) {
  if (number.is_null()) return std::nullopt;
  return number.get<int64_t>();
}

// functional::embed(), or embed_out() into memory with arbitrary content.
StateDict embed(const Json& options, const StateDict& tensors) {
  functional::EmbedFuncOptions how;
  how.scale(scale_of(options.at("scale"))).padding_idx(maybe(options.at("padding_idx")));
  how.dropout(options.at("dropout")).training(options.at("train")).sparse(options.at("sparse"));
  how.position().batch_first(options.at("batch_first")).offset(options.at("offset"));
  if (tensors.contains("position_ids")) how.position().position_ids(tensors["position_ids"]);
  const auto weight = tensors["weight"].clone().requires_grad_();
  torch::manual_seed(options.at("seed").get<uint64_t>());
  StateDict results;
  if (options.at("into_out").get<bool>()) {
    const torch::NoGradGuard no_grad;
    const auto out = torch::full_like(tensors["cotangent"], 7.0);
    functional::embed_out(out, tensors["ids"], weight, tensors["table"], how);
    results.insert("out", out);
    return results;
  }
  const auto out = functional::embed(tensors["ids"], weight, tensors["table"], how);
  (out * tensors["cotangent"]).sum().backward();
  results.insert("out", out);
  const auto grad = weight.grad();
  results.insert("grad.weight", grad.is_sparse() ? grad.to_dense() : grad);
  return results;
}

// The notebooks' modules with their own tables.
StateDict notebook(const Json& options, const StateDict& tensors) {
  const std::string name = options.at("module");
  const int64_t vocab = options.at("vocab"), dim = options.at("dim"), rows = options.at("max_len");
  if (name == "InputEmbedding") {
    InputEmbedding module(InputEmbeddingOptions(vocab, dim, rows));
    return differentiate(*module, options, tensors,
                         [&](const StateDict& in) { return module->forward(in["ids"]); });
  }
  if (name == "TokenAndPositionEmbedding") {
    TokenAndPositionEmbedding module(
        TokenAndPositionEmbeddingOptions(vocab, dim, rows).dropout(options.at("dropout")));
    return differentiate(*module, options, tensors,
                         [&](const StateDict& in) { return module->forward(in["ids"]); });
  }
  if (name == "TimestepEmbedding") {
    TimestepEmbedding module(
        TimestepEmbeddingOptions(dim, options.at("channels").get<int64_t>()).max_len(rows));
    return differentiate(*module, options, tensors, [&](const StateDict& in) {
      return module->add_to(in["image"], in["ids"]);
    });
  }
  using How = PositionEmbeddingOptions;
  PositionEmbedding module(How(dim).max_len(rows).register_as(
      name == "MyPositionEncoding" ? How::RegisterAs::Buffer : How::RegisterAs::Parameter));
  StateDict results;
  results.insert("out", module->forward(tensors["in.ids"]));
  return results;
}

// PositionalEncoding with any preset whose rows are positions 0, 1, ...
StateDict positional_encoding(const Json& options, const StateDict& tensors) {
  static const TableSource kAll[] = {TableSource::Buffer, TableSource::Factored,
                                     TableSource::OnTheFly};
  const auto how = PositionalEncodingOptions(options.at("dim"), options.at("max_len"))
                       .sinusoid(preset(options.at("preset").get<std::string>(), options.at("dim")))
                       .table_source(kAll[options.at("storage").get<size_t>()])
                       .dropout(options.at("dropout"))
                       .batch_first(options.at("batch_first"))
                       .grow(options.at("grow"));
  PositionalEncoding module(how);
  return differentiate(*module, options, tensors, [&](const StateDict& in) {
    const auto ids = in.contains("position_ids") ? in["position_ids"] : at::Tensor();
    return module->forward(in["x"], options.at("offset").get<int64_t>(), ids);
  });
}

}  // namespace

Ops embedding_ops() {
  return {{"embed", embed}, {"notebook", notebook}, {"positional_encoding", positional_encoding}};
}

}  // namespace posenc::differential
