#include "posenc/models/marian.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <torch/nn/module.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "io/load/file_source.h"
#include "io/load/fit.h"
#include "io/read/context.h"
#include "models/marian/config.h"
#include "models/marian/names.h"

namespace posenc {
namespace {

const char* const kWeights[] = {"model.safetensors", "model.safetensors.index.json",
                                "pytorch_model.bin", "pytorch_model.bin.index.json"};
const std::string kShared = "model.shared.weight";

std::string weights_in(const std::string& folder) {
  for (const char* name : kWeights) {
    const auto path = std::filesystem::path(folder) / name;
    if (std::filesystem::exists(path)) return path.string();
  }
  throw WeightsError(WeightsErrorCode::NotFound,
                     "must hold model.safetensors, pytorch_model.bin or an index of shards")
      .in_file(folder)
      .in_function("load_marian");
}

// What the file may do without: transformers computes the first two, and has zeros for the third.
bool is_optional(const std::string& name) {
  return name == "model.encoder.embed_positions.weight" ||
         name == "model.decoder.embed_positions.weight" || name == "final_logits_bias";
}

// The sizes that the configuration tells and a tensor shows, each looked up before any memory is
// taken for a model of these sizes.
void check_sizes(const TransformerOptions& options, const io::TensorSource& source,
                 const std::string& folder) {
  const auto layer = [](const char* stack, int64_t index) {
    return "model." + std::string(stack) + ".layers." + std::to_string(index) + ".fc1.weight";
  };
  const struct {
    const char* setting;
    int64_t value;
    std::vector<std::string> tensors;  // the first that the file has
    std::size_t axis;
  } told[] = {
      {"vocab_size", options.src_vocab(), {kShared, "model.encoder.embed_tokens.weight"}, 0},
      {"d_model", options.d_model(), {kShared, "model.encoder.embed_tokens.weight"}, 1},
      {"decoder_vocab_size",
       options.tgt_vocab(),
       {"model.decoder.embed_tokens.weight", "lm_head.weight", kShared},
       0},
      {"encoder_ffn_dim", options.d_ff(), {layer("encoder", 0)}, 0},
      {"decoder_ffn_dim", *options.decoder_d_ff(), {layer("decoder", 0)}, 0},
      {"max_position_embeddings",
       options.max_len(),
       {"model.encoder.embed_positions.weight"},
       0},
  };
  for (const auto& [setting, value, tensors, axis] : told) {
    for (const auto& name : tensors) {
      const auto* entry = source.find(name);
      if (entry == nullptr) continue;
      TORCH_CHECK_VALUE(entry->sizes.size() == 2 && entry->sizes[axis] == value, "[load_marian] ",
                        folder, ": ", setting, " in config.json must be the size of axis ", axis,
                        " of ", name, " (", c10::Join(", ", entry->sizes), "). Got ", value);
      break;
    }
  }
  const auto check_layers = [&](const char* stack, int64_t layers) {
    TORCH_CHECK_VALUE(source.find(layer(stack, layers - 1)) != nullptr, "[load_marian] ", folder,
                      ": ", stack, "_layers in config.json must be how many the weights have. Got ",
                      layers, ", and no ", layer(stack, layers - 1));
  };
  check_layers("encoder", options.num_encoder_layers());
  check_layers("decoder", options.num_decoder_layers());
}

// Puts the tensor where a module tree has the dotted name.
void put(torch::nn::Module& root, const std::string& name, const torch::Tensor& tensor) {
  torch::nn::Module* at = &root;
  std::size_t begin = 0;
  for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.', begin)) {
    const auto part = name.substr(begin, dot - begin);
    const auto children = at->named_children();
    const auto* child = children.find(part);
    at = child != nullptr ? child->get()
                          : at->register_module(part, std::make_shared<torch::nn::Module>()).get();
    begin = dot + 1;
  }
  at->register_buffer(name.substr(begin), tensor);
}

// The model's own memory under transformers' names and in its shapes, for the loader to fill.
std::shared_ptr<torch::nn::Module> as_marian(TransformerImpl& model,
                                             const io::TensorSource& source) {
  auto marian = std::make_shared<torch::nn::Module>();
  for (const auto& item : state_dict(model)) {
    const auto names = marian_names(item.key());
    const auto parts = item.value().detach().chunk(static_cast<int64_t>(names.size()), 0);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto* entry = source.find(names[i]);
      if (entry == nullptr && is_optional(names[i])) continue;
      torch::Tensor part = parts[i];
      if (names[i] == "final_logits_bias") part = part.unsqueeze(0);  // (1, V)
      if (item.key().ends_with(".pe")) part = part.squeeze(0);        // (L, D)
      put(*marian, names[i], part);
    }
  }
  if (model.options.tie() == Tying::ThreeWay) {
    put(*marian, kShared, model.src_embedding->token_embedding->weight.detach());
  }
  return marian;
}

void check_finite(const TransformerImpl& model, const std::string& path) {
  for (const auto& item : model.named_parameters()) {
    const auto [least, most] = at::aminmax(item.value());  // either is NaN where an element is
    if (std::isfinite(least.item<double>()) && std::isfinite(most.item<double>())) continue;
    throw WeightsError(WeightsErrorCode::Corrupt, "must be finite numbers. Got infinity or NaN")
        .in_tensor(marian_names(item.key()).front())
        .in_file(path)
        .in_function("load_marian");
  }
}

}  // namespace

MarianModel load_marian(const std::string& folder) {
  const auto config = io::in_context("load_marian", folder, [&] { return read_marian_config(folder); });
  const std::string path = weights_in(folder);
  Transformer model{nullptr};
  io::in_context("load_marian", path, [&] {
    const io::FileSource source(path);
    check_sizes(config.transformer, source, folder);
    model = Transformer(config.transformer);
    torch::nn::init::zeros_(model->final_layer->bias);
    auto options = LoadOptions().cast(true);
    if (config.transformer.tie() != Tying::ThreeWay) options.key_map({{kShared, ""}});
    io::Fit(*as_marian(*model, source), source, options).write();
    check_finite(*model, path);
  });
  model->eval();
  return {model, config.generation, config.pad};
}

}  // namespace posenc
