#include "posenc/models/marian.h"

#include <ATen/ops/aminmax.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "io/base/context.h"
#include "io/load/file_source.h"
#include "models/marian/config.h"
#include "models/marian/names.h"
#include "posenc/core/skip_init.h"

namespace posenc {
namespace {

const char* const kWeights[] = {"model.safetensors", "model.safetensors.index.json",
                                "pytorch_model.bin", "pytorch_model.bin.index.json"};

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

const io::TensorSource::Entry* entry_of(const io::TensorSource& source, const std::string& name) {
  for (const auto& entry : source.entries()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

WeightsError missing_tensor(const std::string& name) {
  return WeightsError(WeightsErrorCode::MissingKeys, "is not in the file").in_tensor(name);
}

// Checks the sizes in the configuration against the tensors, before allocating a model of these
// sizes.
void check_sizes(const TransformerOptions& options, const io::TensorSource& source,
                 const std::string& folder) {
  const auto layer = [](const char* stack, int64_t index) {
    return "model." + std::string(stack) + ".layers." + std::to_string(index) + ".fc1.weight";
  };
  const struct {
    const char* setting;
    int64_t value;
    std::vector<std::string> tensors;  // the file has at least one of them
    std::size_t axis;
  } stated[] = {
      {"vocab_size", options.src_vocab(), {"model.encoder.embed_tokens.weight", kMarianShared}, 0},
      {"d_model", options.d_model(), {"model.encoder.embed_tokens.weight", kMarianShared}, 1},
      {"decoder_vocab_size",
       options.tgt_vocab(),
       {"model.decoder.embed_tokens.weight", "lm_head.weight", kMarianShared},
       0},
      {"encoder_ffn_dim", options.d_ff(), {layer("encoder", 0)}, 0},
      {"decoder_ffn_dim", *options.decoder_d_ff(), {layer("decoder", 0)}, 0},
  };
  for (const auto& [setting, value, tensors, axis] : stated) {
    const auto has = [&](const auto& name) { return entry_of(source, name) != nullptr; };
    const auto found = std::find_if(tensors.begin(), tensors.end(), has);
    if (found == tensors.end()) throw missing_tensor(tensors.front());
    const auto& sizes = entry_of(source, *found)->sizes;
    TORCH_CHECK_VALUE(sizes.size() == 2 && sizes[axis] == value, "[load_marian] ", folder, ": ",
                      setting, " in config.json must be axis ", axis, " of ", *found, ", (",
                      c10::Join(", ", sizes), "). Got ", value);
  }
  for (const char* name :
       {"model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"}) {
    const auto* entry = entry_of(source, name);
    if (entry == nullptr) continue;  // it can be computed
    TORCH_CHECK_VALUE(entry->sizes.size() == 2 && entry->sizes[0] == options.max_len(),
                      "[load_marian] ", folder,
                      ": max_position_embeddings in config.json must be axis 0 of ", name, ", (",
                      c10::Join(", ", entry->sizes), "). Got ", options.max_len());
  }
  const std::pair<const char*, int64_t> stacks[] = {{"encoder", options.num_encoder_layers()},
                                                    {"decoder", options.num_decoder_layers()}};
  for (const auto& [stack, layers] : stacks) {
    TORCH_CHECK_VALUE(entry_of(source, layer(stack, layers - 1)) != nullptr, "[load_marian] ",
                      folder, ": ", stack,
                      "_layers in config.json must be how many the weights have, ", "which lack ",
                      layer(stack, layers - 1), ". Got ", layers);
  }
}

// NaN is never allowed, and infinity only in final_logits_bias, where it means "never".
void check_finite(const TransformerImpl& model, const std::string& path) {
  for (const auto& item : model.named_parameters()) {
    const auto [least, most] = at::aminmax(item.value());  // both are NaN if any element is
    const double range[] = {least.item<double>(), most.item<double>()};
    const bool may_be_infinite = item.key() == "final_layer.bias";
    if (std::all_of(std::begin(range), std::end(range), [&](double value) {
          return std::isfinite(value) || (may_be_infinite && std::isinf(value));
        })) {
      continue;
    }
    throw WeightsError(WeightsErrorCode::Corrupt, "must be finite numbers. Got infinity or NaN")
        .in_tensor(marian_name(item.key()))
        .in_file(path)
        .in_function("load_marian");
  }
}

Transformer empty_model(const TransformerOptions& options) {
  const SkipInit skip;
  Transformer model(options);
  torch::nn::init::zeros_(model->final_layer->bias);  // optional in a file
  return model;
}

void fill_from(const io::TensorSource& source, TransformerImpl& model) {
  const Tying tying = model.options.tie();
  io::LoadPlan(model, source, marian_load_options(tying), marian_format_names(tying)).apply();
}

}  // namespace

MarianModel load_marian(const std::string& folder) {
  const auto options =
      io::in_context("load_marian", folder, [&] { return read_marian_options(folder); });
  const std::string path = weights_in(folder);
  return io::in_context("load_marian", path, [&] {
    const io::FileSource source(path);
    check_sizes(options, source, folder);
    auto search = read_marian_search(folder, options);
    Transformer model = empty_model(options);
    fill_from(source, *model);
    check_finite(*model, path);
    model->eval();
    return MarianModel{model, std::move(search.generation), search.pad};
  });
}

}  // namespace posenc
