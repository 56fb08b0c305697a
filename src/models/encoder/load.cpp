#include "models/encoder/folder.h"

#include <ATen/ops/equal.h>
#include <c10/util/StringUtil.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "models/config/model_folder.h"
#include "models/encoder/names.h"
#include "models/encoder/parts.h"
#include "models/lora/adapted_folder.h"
#include "models/lora/heads.h"
#include "models/sentence/sentence_folder.h"
#include "posenc/core/skip_init.h"
#include "weights/common/file.h"
#include "weights/load/key_map.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

// What the names of a layer's tensors begin with: `name` up to the number by which it differs from
// `other`, the same tensor of the layer before.
std::string stem_of_layer(const std::string& name, const std::string& other) {
  const auto at = std::mismatch(name.begin(), name.end(), other.begin(), other.end()).first;
  const auto end = std::find_if(at, name.end(), [](char c) { return c == '.'; });
  return {name.begin(), end == name.end() ? end : end + 1};
}

// A layer that lacks some tensors is one: the load names those.
void check_layers(const EncoderFolder& open) {
  const EncoderConfig& config = open.config;
  const int64_t layers = config.options.encoder().num_layers();
  if (layers == 1) return;  // which encoder_prefix() has found
  const auto part = first_part_of_layer(config);
  const auto names = encoder_layer_names(config, open.prefix, layers - 1, part);
  const auto others = encoder_layer_names(config, open.prefix, layers - 2, part);
  bool has_last = false;
  for (std::size_t i = 0; i < names.size(); ++i)
    has_last |= has_tensors_of(open.source, stem_of_layer(names[i], others[i]));
  TORCH_CHECK_VALUE(has_last, "[", open.caller, "] ", open.folder, ": ",
                    config.structure.numbering != nullptr
                        ? config.structure.numbering->count
                        : config.settings.key("num_hidden_layers"),
                    " in config.json must be at most how many layers the weights have, which lack ",
                    names.front(), ". Got ", layers);
}

Encoder empty_encoder(const EncoderConfig& config) {
  const io::FormatNames names = encoder_format_names(config);
  const SkipInit skip;
  Encoder model(config.options);
  for (auto& item : model->named_parameters()) {
    if (names.optional.count(item.key()) != 0) torch::nn::init::zeros_(item.value());
  }
  return model;
}

void set_frequencies(EncoderImpl& model, const at::Tensor& frequencies, const std::string& name) {
  for (const auto& layer : *model.encoder->layers) {
    const RotaryEmbedding rotary = rotary_of_layer(*layer);
    if (!rotary) continue;
    if (rotary->inv_freq.sizes() != frequencies.sizes()) {
      throw WeightsError(WeightsErrorCode::ShapeMismatch,
                         "must have the frequencies of a head of these layers. Got shape (" +
                             c10::Join(", ", frequencies.sizes()) + ")")
          .in_tensor(name);
    }
    rotary->inv_freq.copy_(frequencies);
  }
}

// The frequencies that a file has of a rotary embedding replace those of the layers.
void read_frequencies(const EncoderConfig& config, const io::TensorSource& source,
                      const std::string& prefix, EncoderImpl& model) {
  if (!config.options.encoder().layer().rotary()) return;
  std::istringstream names(config.structure.frequencies);
  for (std::string own; names >> own;) {
    const at::Tensor frequencies = tensor_in(source, prefix + own);
    if (frequencies.defined()) return set_frequencies(model, frequencies, prefix + own);
  }
}

}  // namespace

at::Tensor tensor_in(const io::TensorSource& source, const std::string& name) {
  const auto* entry = find_entry(source, name);
  if (entry == nullptr) return {};
  const auto index = static_cast<std::size_t>(entry - source.entries().data());
  return source.tensor(index).to(at::kFloat).cpu();
}

void read_encoder_folder(const char* caller, const std::string& folder, const LoadOptions& options,
                         const std::function<void(EncoderFolder&)>& read,
                         const std::function<std::string(const Settings&)>& part_of) {
  check_folder_options(caller, options);
  check_is_folder(caller, folder);
  const AdaptedFolder place = adapted_folder(caller, folder, options);
  const std::string& own = place.folder;
  const LoadOptions& load = place.options;
  check_holds_encoder(caller, own);
  auto adapters = lora::load_all(caller, load.adapters());
  EncoderConfig config = io::in_context(caller, own, [&] {
    const Settings settings = lora::with_heads(model_config(caller, own), adapters);
    return read_encoder_config(settings, part_of ? part_of(settings) : "");
  });
  const std::string path = weights_in(caller, own);
  io::in_context(caller, path, [&] {
    const std::string type = config.whole.text("model_type", "");
    const io::FileSource file(path);
    const io::RenamedSource renamed(file, options.prefix(), options.key_map());
    lora::ModelNames names = {type, {config.model.prefix, config.model.old_prefix}};
    if (!adapters.empty()) {
      names.decoder = config.model.decoder;
      names.map = encoder_key_map(config);
      names.later =
          encoder_later_layers(config, renamed, encoder_prefix(config, renamed, options.prefix()));
    }
    lora::AdaptedSource source(renamed, std::move(adapters), names, options.prefix());
    Leftovers leftovers(source, load, {type, config.model.type});
    leftovers.add_unused_patterns(renamed);
    EncoderFolder open(caller, own, load, std::move(config), path, source, leftovers);
    open.given = folder;
    open.adapted = source.empty() ? nullptr : &source;
    read(open);
    source.check_targets(leftovers.read());
    leftovers.finish();
    return 0;
  });
}

EncoderFolder::EncoderFolder(const char* caller, const std::string& folder,
                             const LoadOptions& options, EncoderConfig config,
                             const std::string& path, const io::TensorSource& source,
                             Leftovers& leftovers)
    : caller(caller),
      folder(folder),
      options(options),
      config(std::move(config)),
      path(path),
      source(source),
      leftovers(leftovers),
      prefix(encoder_prefix(this->config, source, options.prefix())) {
  encoder::Origin& origin = this->config.options.origin();
  origin.folder = std::filesystem::absolute(folder).string();
  origin.prefix = prefix.substr(options.prefix().size());
  origin.layout = encoder_layout(this->config, source, prefix);
}

EncoderFolder::EncoderFolder(const EncoderFolder& open, const io::TensorSource& other)
    : caller(open.caller),
      folder(open.folder),
      options(open.options),
      config(open.config),
      path(open.path),
      source(other),
      leftovers(open.leftovers),
      prefix(open.prefix),
      given(open.given),
      adapted(open.adapted),
      is_strict(open.is_strict) {}

void EncoderFolder::be_strict() {
  is_strict = true;
  leftovers.be_strict();
}

void keep_tied_output(const EncoderFolder& open, const std::string& out) {
  if (open.adapted == nullptr) return;
  for (const std::string& table : encoder_token_table_names(open.config, open.prefix))
    if (open.adapted->is_changed(table)) open.adapted->keep(out, table);
}

bool differs(const EncoderFolder& open, const std::string& name, const at::Tensor& tensor) {
  const io::TensorSource::Entry* const entry = find_entry(open.source, name);
  if (entry->sizes != tensor.sizes().vec()) return true;
  const auto index = static_cast<std::size_t>(entry - open.source.entries().data());
  return !at::equal(open.source.tensor(index).to(tensor.scalar_type()), tensor);
}

bool lacks_pooler(const EncoderFolder& open) {
  const auto names = encoder_pooler_names(open.config, open.prefix);
  return !names.empty() && std::none_of(names.begin(), names.end(), [&](const auto& name) {
    return find_entry(open.source, name) != nullptr;
  });
}

Encoder encoder_in(const EncoderFolder& open, const std::string& part) {
  check_layers(open);
  const ZeroBiases source(open.source, absent_biases(open.config, open.prefix));
  const LoadOptions load =
      encoder_load_options(open.config, source, open.prefix, /*drops_later=*/!open.is_strict)
          .allow_unexpected(true);
  const auto plan = encoder_plan(open.caller, open.folder, open.config, source, load);
  Encoder model = empty_encoder(open.config);
  plan->apply_to(*model);
  open.leftovers.add_model(*plan, open.prefix, part);
  read_frequencies(open.config, open.source, open.prefix, *model);
  if (auto* const load_more = open.config.structure.load)
    load_more(open.config, open.source, open.prefix, *model);
  const auto name_in_file = [&](const std::string& name) {
    const auto found = io::names_in_file(name, load);
    return found.empty() ? open.prefix + name : found.front();
  };
  check_finite(open.caller, *model, open.path, name_in_file,
               [](const std::string&) { return false; });
  model->eval();
  return model;
}

Encoder encoder_with_its_pooler(EncoderFolder& open, const std::string& part) {
  // The vector of a sentence-transformers model is what its later stages make of
  // last_hidden_state; the pooler beside them is not part of it.
  const bool is_of_sentences = is_sentence_model(open.caller, open.folder) ||
                               (!open.given.empty() && is_sentence_model(open.caller, open.given));
  if (is_of_sentences || lacks_pooler(open)) {
    open.config.options.pooling(encoder::Pooling::None);
  }
  return encoder_in(open, part);
}

Encoder load_encoder(const std::string& folder, const LoadOptions& options) {
  Encoder model{nullptr};
  read_encoder_folder("load_encoder", folder, options,
                      [&](EncoderFolder& open) { model = encoder_with_its_pooler(open); });
  return model;
}

}  // namespace posenc
