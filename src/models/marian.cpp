#include "posenc/models/marian.h"

#include <torch/nn/init.h>

#include "io/base/context.h"
#include "io/load/file_source.h"
#include "models/marian/config.h"
#include "models/marian/names.h"
#include "models/model_folder.h"
#include "posenc/core/skip_init.h"

namespace posenc {
namespace {

// Checks the sizes in the configuration against the tensors, before allocating a model of these
// sizes.
void check_sizes(const TransformerOptions& options, const io::TensorSource& source,
                 const std::string& folder) {
  const auto layer = [](const char* stack, int64_t index) {
    return "model." + std::string(stack) + ".layers." + std::to_string(index) + ".fc1.weight";
  };
  const std::string source_tokens = "model.encoder.embed_tokens.weight";
  std::vector<std::string> target = {"model.decoder.embed_tokens.weight", "lm_head.weight",
                                     kMarianShared};
  std::vector<std::string> tokens = {source_tokens, kMarianShared};
  // Then all names stand for one matrix, of which a file may have any.
  if (options.tie() == Tying::ThreeWay) {
    tokens.insert(tokens.end(), target.begin(), target.end());
    target.push_back(source_tokens);
  }
  std::vector<StatedSize> stated = {
      {"vocab_size", options.src_vocab(), tokens, 0},
      {"d_model", options.d_model(), tokens, 1},
      {"decoder_vocab_size", options.tgt_vocab(), target, 0},
      {"encoder_ffn_dim", options.d_ff(), {layer("encoder", 0)}, 0},
      {"decoder_ffn_dim", *options.decoder_d_ff(), {layer("decoder", 0)}, 0},
  };
  for (const char* name :
       {"model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"}) {
    if (find_entry(source, name) == nullptr) continue;  // it can be computed
    stated.push_back({"max_position_embeddings", options.max_len(), {name}, 0});
  }
  check_stated_sizes("load_marian", folder, source, stated);
  const std::pair<const char*, int64_t> stacks[] = {{"encoder", options.num_encoder_layers()},
                                                    {"decoder", options.num_decoder_layers()}};
  for (const auto& [stack, layers] : stacks) {
    TORCH_CHECK_VALUE(
        find_entry(source, layer(stack, layers - 1)) != nullptr, "[load_marian] ", folder, ": ",
        stack, "_layers in config.json must be at most how many the weights have, which lack ",
        layer(stack, layers - 1), ". Got ", layers);
  }
}

Transformer empty_model(const TransformerOptions& options) {
  const SkipInit skip;
  Transformer model(options);
  torch::nn::init::zeros_(model->final_layer->bias);  // optional in a file
  return model;
}

void fill_from(const io::TensorSource& source, TransformerImpl& model) {
  const LoadOptions load = marian_load_options(model.options, source);
  io::LoadPlan(model, source, load, marian_format_names(model.options.tie())).apply();
}

}  // namespace

MarianModel load_marian(const std::string& folder) {
  const auto config =
      io::in_context("load_marian", folder, [&] { return model_config("load_marian", folder); });
  const TransformerOptions options = read_marian_options(config);
  const std::string path = weights_in("load_marian", folder);
  return io::in_context("load_marian", path, [&] {
    const io::FileSource source(path);
    check_sizes(options, source, folder);
    auto search = read_marian_search(folder, config, options);
    Transformer model = empty_model(options);
    fill_from(source, *model);
    // -inf in final_logits_bias means "never".
    // A lambda: for a pointer to a function, a shared library would export a name of std's.
    const auto name_in_file = [](const std::string& name) { return marian_name(name); };
    check_finite("load_marian", *model, path, name_in_file,
                 [](const std::string& name) { return name == "final_layer.bias"; });
    model->eval();
    return MarianModel{model, std::move(search.generation), search.pad};
  });
}

}  // namespace posenc
