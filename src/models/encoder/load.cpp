// load_encoder(), and the reading of its folder.

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pow.h>
#include <c10/util/StringUtil.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <filesystem>

#include "io/base/file.h"
#include "io/load/key_map.h"
#include "io/load/source.h"
#include "models/encoder/config.h"
#include "models/encoder/names.h"
#include "models/model_folder.h"
#include "models/sentence_folder.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/encoder.h"

namespace posenc {
namespace {

constexpr const char* kLoadEncoder = "load_encoder";

// Before a model of these sizes is allocated.
void check_encoder_sizes(const EncoderConfig& config, const io::TensorSource& source,
                         const std::string& prefix, const std::string& folder) {
  check_stated_sizes(kLoadEncoder, folder, source, encoder_stated_sizes(config, prefix));
  const int64_t layers = config.options.encoder().num_layers();
  const auto names = encoder_layer_names(config, prefix, layers - 1, &EncoderLayerKeys::query);
  const bool has_last = std::any_of(names.begin(), names.end(), [&](const auto& name) {
    return find_entry(source, name) != nullptr;
  });
  TORCH_CHECK_VALUE(has_last, "[load_encoder] ", folder, ": ",
                    config.structure.shares_layers ? "num_hidden_groups * inner_group_num"
                                                   : config.settings.key("num_hidden_layers"),
                    " in config.json must be at most how many layers the weights have, which lack ",
                    names.front(), ". Got ", layers);
}

Encoder empty_encoder(const EncoderConfig& config, const io::FormatNames& names) {
  const SkipInit skip;
  Encoder model = config.settings.placing_errors([&] { return Encoder(config.options); });
  for (auto& item : model->named_parameters()) {
    if (names.optional.count(item.key()) != 0) torch::nn::init::zeros_(item.value());
  }
  return model;
}

void check_load_options(const LoadOptions& options) {
  TORCH_CHECK_VALUE(!options.allow_missing(),
                    "[load_encoder] allow_missing must be false: an encoder without some of its "
                    "weights computes nothing of use. Got true");
  io::check_renames(kLoadEncoder, options.key_map());
}

// A name on Hugging Face's hub, where a path is expected, is an easy mistake.
void check_is_folder(const std::string& folder) {
  std::error_code unknown;  // such as a name that is too long, or a link to itself
  if (std::filesystem::is_directory(folder, unknown)) return;
  throw WeightsError(WeightsErrorCode::NotFound,
                     "must be a folder on this machine; nothing is downloaded",
                     "`hf download MODEL --local-dir FOLDER` or save_pretrained() in Python makes "
                     "one")
      .in_file(folder)
      .in_function(kLoadEncoder);
}

// The vector of a sentence-transformers model is what its later stages make of last_hidden_state;
// the pooler beside them is not part of it.
bool has_no_pooled(const EncoderConfig& config, const io::TensorSource& source,
                   const std::string& prefix, const std::string& folder) {
  if (is_sentence_model(kLoadEncoder, folder)) return true;
  const auto names = encoder_pooler_names(config, prefix);
  return !names.empty() && std::none_of(names.begin(), names.end(), [&](const auto& name) {
    return find_entry(source, name) != nullptr;
  });
}

at::Tensor tensor_in(const io::TensorSource& source, const std::string& name) {
  const auto* entry = find_entry(source, name);
  if (entry == nullptr) return {};
  const auto index = static_cast<std::size_t>(entry - source.entries().data());
  return source.tensor(index).to(at::kFloat).cpu();
}

WeightsError wrong_tensor(const std::string& name, const std::string& rule) {
  return WeightsError(WeightsErrorCode::ShapeMismatch, rule).in_tensor(name);
}

// RoFormerSinusoidalPositionalEmbedding: sin in the first half of the columns, cos in the second.
void check_table(const RotaryOptions& rotary, const at::Tensor& table, const std::string& name) {
  const int64_t pairs = rotary.rotary_dim() / 2;
  bool is_computed = table.dim() == 2 && table.size(1) == 2 * pairs;
  if (is_computed) {
    const auto rows = at::arange(table.size(0), at::kDouble).unsqueeze(1);
    const auto angles =
        rows / at::pow(rotary.base(), at::arange(pairs, at::kDouble) / static_cast<double>(pairs));
    const at::Tensor expected = at::cat({angles.sin(), angles.cos()}, 1).to(at::kFloat);
    is_computed = at::allclose(table, expected, /*rtol=*/0.0, /*atol=*/1e-5);
  }
  if (!is_computed) {
    throw wrong_tensor(name,
                       "must be the sinusoid that RoFormer's positions are, which posenc "
                       "computes. Got other numbers");
  }
}

void set_frequencies(EncoderImpl& model, const at::Tensor& frequencies, const std::string& name) {
  for (const auto& layer : *model.encoder->layers) {
    const auto& rotary = layer->as<TransformerEncoderLayerImpl>()->self_attn->rotary;
    if (!rotary) continue;
    if (rotary->inv_freq.sizes() != frequencies.sizes()) {
      throw wrong_tensor(name, "must have the frequencies of a head of these layers. Got shape (" +
                                   c10::Join(", ", frequencies.sizes()) + ")");
    }
    rotary->inv_freq.copy_(frequencies);
  }
}

// What a file has of a rotary embedding: its frequencies replace those of the layers, and a table
// must be the one that the layers compute.
void read_saved_tables(const EncoderConfig& config, const io::TensorSource& source,
                       const std::string& prefix, EncoderImpl& model) {
  const EncoderStructure& structure = config.structure;
  const auto& rotary = config.options.encoder().layer().rotary();
  if (!rotary) return;
  if (*structure.rotary_table != '\0') {
    const std::string name = prefix + structure.rotary_table;
    const at::Tensor table = tensor_in(source, name);
    if (table.defined()) check_table(rotary->rotary(), table, name);
  }
  if (*structure.frequencies == '\0') return;
  // Older files have the same in each layer; those of transformers 5.23 have an asterisk there.
  const std::string old[] = {"encoder.layer.*.attention.self.rotary_embeddings.inv_freq",
                             "encoder.layer.0.attention.self.rotary_embeddings.inv_freq"};
  for (const std::string& own : {std::string(structure.frequencies), old[0], old[1]}) {
    const at::Tensor frequencies = tensor_in(source, prefix + own);
    if (!frequencies.defined()) continue;
    return set_frequencies(model, frequencies, prefix + own);
  }
}

}  // namespace

Encoder load_encoder(const std::string& folder, const LoadOptions& options) {
  check_load_options(options);
  check_is_folder(folder);
  check_holds_encoder(kLoadEncoder, folder);
  EncoderConfig config = io::in_context(kLoadEncoder, folder, [&] {
    return read_encoder_config(model_config(kLoadEncoder, folder));
  });
  const std::string path = weights_in(kLoadEncoder, folder);
  return io::in_context(kLoadEncoder, path, [&] {
    const io::FileSource file(path);
    const io::RenamedSource source(file, options.prefix(), options.key_map());
    const std::string prefix = encoder_prefix(config, source, options.prefix());
    if (has_no_pooled(config, source, prefix, folder)) {
      config.options.pooling(encoder::Pooling::None);
    }
    check_encoder_sizes(config, source, prefix, folder);
    const LoadOptions load =
        encoder_load_options(config, source, prefix).allow_unexpected(options.allow_unexpected());
    const io::FormatNames names = encoder_format_names(config);
    Encoder model = empty_encoder(config, names);
    io::LoadPlan(*model, source, load, names).apply();
    read_saved_tables(config, source, prefix, *model);
    const auto name_in_file = [&](const std::string& name) {
      const auto found = io::names_in_file(name, load);
      return found.empty() ? prefix + name : found.front();
    };
    check_finite(kLoadEncoder, *model, path, name_in_file,
                 [](const std::string&) { return false; });
    model->eval();
    return model;
  });
}

}  // namespace posenc
