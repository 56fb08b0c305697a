// load_encoder(), and the reading of its folder.

#include <torch/nn/init.h>

#include <algorithm>

#include "io/base/context.h"
#include "io/load/file_source.h"
#include "io/load/key_map.h"
#include "models/encoder/config.h"
#include "models/encoder/names.h"
#include "models/model_folder.h"
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
                    config.row.shares_layers ? "num_hidden_groups * inner_group_num"
                                             : config.settings.key("num_hidden_layers"),
                    " in config.json must be at most how many layers the weights have, which lack ",
                    names.front(), ". Got ", layers);
}

Encoder of_settings(const EncoderConfig& config) {
  try {
    return Encoder(config.options);
  } catch (const c10::ValueError& error) {
    refuse_settings(config.settings, error);
  }
}

Encoder empty_encoder(const EncoderConfig& config, const io::FormatNames& names) {
  const SkipInit skip;
  Encoder model = of_settings(config);
  for (auto& item : model->named_parameters()) {
    if (names.optional.count(item.key()) != 0) torch::nn::init::zeros_(item.value());
  }
  return model;
}

// x + lambda * (W y + b) is x + (lambda W) y + lambda b.
void fold_layer_scale(EncoderImpl& model, const io::TensorSource& source,
                      const std::string& prefix) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < model.encoder->layers->size(); ++i) {
    auto& layer = *model.encoder->layers->ptr<TransformerEncoderLayerImpl>(i);
    const auto fold = [&](const char* number, torch::nn::LinearImpl& linear) {
      const std::string name =
          prefix + "encoder.layer." + std::to_string(i) + ".layer_scale" + number + ".lambda1";
      const auto* entry = find_entry(source, name);
      if (entry == nullptr) throw missing_tensor(name);
      const int64_t width = linear.bias.size(0);
      if (entry->sizes != std::vector<int64_t>{width}) {
        throw WeightsError(WeightsErrorCode::ShapeMismatch,
                           "must have shape (" + std::to_string(width) + ")")
            .in_tensor(name);
      }
      const auto index = static_cast<size_t>(entry - source.entries().data());
      const torch::Tensor scale = source.tensor(index).to(torch::kFloat);
      linear.weight.mul_(scale.unsqueeze(1));
      linear.bias.mul_(scale);
    };
    fold("1", *layer.self_attn->out_proj);
    fold("2", *layer.linear2);
  }
}

}  // namespace

Encoder load_encoder(const std::string& folder) {
  EncoderConfig config = io::in_context(kLoadEncoder, folder, [&] {
    return read_encoder_config(model_config(kLoadEncoder, folder));
  });
  const std::string path = weights_in(kLoadEncoder, folder);
  return io::in_context(kLoadEncoder, path, [&] {
    const io::FileSource source(path);
    const std::string prefix = encoder_prefix(config, source);
    const std::string pooler = encoder_pooler_name(config, prefix);
    if (!pooler.empty() && find_entry(source, pooler) == nullptr) {
      config.options.pooling(encoder::Pooling::None);
    }
    check_encoder_sizes(config, source, prefix, folder);
    const LoadOptions load = encoder_load_options(config, prefix, source);
    const io::FormatNames names = encoder_format_names(config);
    Encoder model = empty_encoder(config, names);
    io::LoadPlan(*model, source, load, names).apply();
    if (config.row.has_layer_scale) fold_layer_scale(*model, source, prefix);
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
