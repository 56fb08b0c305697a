#include "differential/ops.h"
#include "posenc/text/sentence_encoder.h"

namespace posenc::differential {
namespace {

torch::Tensor vectors_of(const SentenceEncoder& model, const Json& call) {
  SentenceEncodeOptions options;
  options.normalize(call.at("normalize")).batch_size(call.at("batch_size"));
  if (!call.at("prompt").is_null()) options.prompt(call.at("prompt").get<std::string>());
  if (!call.at("prompt_name").is_null())
    options.prompt_name(call.at("prompt_name").get<std::string>());
  if (!call.at("truncate_dim").is_null()) options.truncate_dim(call.at("truncate_dim"));
  const auto texts = call.at("texts").get<std::vector<std::string>>();
  const std::string method = call.at("method");
  if (method == "encode_query") return model.encode_query(texts, options);
  if (method == "encode_document") return model.encode_document(texts, options);
  return model.encode(texts, options);
}

// The vectors of texts, by several calls of a folder's model.
StateDict sentence_texts(const Json& options, const StateDict& /*tensors*/) {
  const SentenceEncoder model = load_sentence_encoder(options.at("folder"));
  StateDict results;
  for (std::size_t i = 0; i < options.at("calls").size(); ++i)
    results.insert(std::to_string(i), vectors_of(model, options.at("calls")[i]));
  return results;
}

}  // namespace

Ops sentence_text_ops() { return {{"sentence_texts", sentence_texts}}; }

}  // namespace posenc::differential
