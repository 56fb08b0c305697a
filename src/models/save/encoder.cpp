// save_pretrained() of an encoder, alone or with a head.
// posenc-budget: one procedure: names, shards and files of one folder

#include <torch/nn/module.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "models/config/model_folder.h"
#include "models/encoder/names.h"
#include "models/encoder/parts.h"
#include "models/save/heads.h"
#include "models/save/input_files.h"
#include "models/save/packed.h"
#include "models/save/save_config.h"
#include "models/save/saved_seq2seq.h"
#include "models/save/target.h"
#include "models/save/tensors.h"
#include "models/save/write_folder.h"
#include "models/seq2seq/load.h"
#include "models/types/model_class.h"
#include "posenc/models/save_pretrained.h"
#include "weights/load/key_map.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

constexpr const char* kSavePretrained = "save_pretrained";

void check_zeros(const std::string& name, const at::Tensor& tensor, const Settings& settings,
                 const char* setting) {
  TORCH_CHECK_VALUE(tensor.eq(0).all().item<bool>(), settings.where(), setting,
                    " must be true for an encoder whose ", name, " is not zeros. Got false");
}

// Biases that the class has not, where it has some of those of queries, keys and values.
StateDict without_absent_biases(const StateDict& tensors, const EncoderConfig& config,
                                const std::string& prefix) {
  std::set<std::string> absent;
  for (const AbsentBias& bias : absent_biases(config, prefix)) absent.insert(bias.name);
  if (absent.empty()) return tensors;
  StateDict kept;
  for (const auto& item : tensors) {
    if (absent.count(item.key()) == 0) {
      kept.insert(item.key(), item.value());
    } else {
      check_zeros(item.key(), item.value(), config.settings, "the setting of its bias");
    }
  }
  return kept;
}

// The frequencies of the rotary embedding, which ESM's class has among its weights.
void add_frequencies(StateDict& tensors, const EncoderImpl& model,
                     const EncoderStructure& structure, const std::string& prefix) {
  const std::string_view names = structure.frequencies;
  if (names.empty()) return;
  const RotaryEmbedding rotary = rotary_of_layer(*model.encoder->layers->ptr(0));
  const std::string name(names.substr(0, names.find(' ')));
  if (rotary) tensors.insert(prefix + name, rotary->inv_freq.to(at::kFloat));
}

// The encoder's tensors as a file of transformers has them.
StateDict encoder_tensors(const EncoderImpl& model, const EncoderConfig& config) {
  const LoadOptions names = encoder_save_options(config);
  StateDict tensors = encoder_parts(model, config);
  change_back(tensors, names);
  add_frequencies(tensors, model, config.structure, names.prefix());
  return without_absent_biases(tensors, config, names.prefix());
}

// The same of an encoder with a decoder. No class with a head has an output layer.
StateDict decoder_tensors(const EncoderImpl& model, const EncoderConfig& config,
                          const std::string& folder) {
  const hf::ModelType& type = config.model;
  const Seq2SeqFamily& family = *type.seq2seq->family;
  const Settings own = seq2seq_settings(config.whole, type.type);
  VocabularyNames names = family.vocabulary(own, *type.seq2seq);
  names.head = names.decoder;
  TransformerOptions options = *config.options.transformer();
  options.tie(model.transformer->options.tie());
  const StateDict tensors = seq2seq_tensors(*model.transformer, type, options, names);
  check_seq2seq_tensors(kSavePretrained, folder, tensors, own, type, options, names);
  const std::string prefix = config.options.origin().prefix;
  StateDict renamed;
  for (const auto& item : tensors)
    renamed.insert(prefix + item.key().substr(std::string(family.prefix).size()), item.value());
  return renamed;
}

bool has_name_with(const StateDict& tensors, const std::string& text) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const auto& item) { return item.key().find(text) != std::string::npos; });
}

std::vector<std::string> modules_beside(const EncoderConfig& config) {
  const EncoderStructure& structure = config.structure;
  if (structure.has_beside != nullptr && !structure.has_beside(config.settings)) return {};
  return words_in(structure.beside);
}

constexpr const char* kRemedy =
    ": SavePretrainedOptions::rest_of copies it from a folder, and allow_missing has it drawn at "
    "random by from_pretrained()";

void check_has_pooler(const SavedConfig& saved, const StateDict& tensors, const std::string& name) {
  const EncoderConfig& config = saved.encoder;
  const EncoderStructure& structure = config.structure;
  EncoderConfig whole = config;
  whole.options.pooling(saved.pooling);
  const bool has_own = !config.model.has_pooler || !has_pooling_weights(whole.options) ||
                       has_name_with(tensors, structure.pooler);
  TORCH_CHECK_VALUE(has_own, "[save_pretrained] the encoder must have a pooler to be a ", name,
                    kRemedy, ". Got no pooler");
}

// What classes of a model type have beside the encoder, with a head or without.
void check_has_beside(const EncoderConfig& config, const StateDict& tensors,
                      const std::string& name) {
  for (const std::string& beside : modules_beside(config))
    TORCH_CHECK_VALUE(has_name_with(tensors, beside + "."), "[save_pretrained] a ", name,
                      " must have its ", beside, kRemedy, ". Got only the encoder");
}

// What the class has beside the encoder, from the folder that the encoder came from if that still
// has it: ESM's contact_head. The other half of an encoder-decoder is left to rest_of.
void add_beside(StateDict& tensors, const EncoderConfig& config, const std::string& folder) {
  std::vector<std::string> parts;
  for (const std::string& module : modules_beside(config))
    if (module != "decoder" && !has_name_with(tensors, module + ".")) parts.push_back(module + ".");
  if (folder.empty() || parts.empty()) return;
  RestOfFolder origin;
  try {
    origin = rest_of_folder(config, folder);
  } catch (const WeightsError&) {  // check_has_beside() says what is missing
    return;
  }
  const std::string& prefix = origin.origin.prefix;
  for (const auto& item : origin.tensors) {
    const bool is_missing = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return item.key().find(part) != std::string::npos;
    });
    if (!is_missing || !item.key().starts_with(prefix)) continue;
    tensors.insert(config.options.origin().prefix + item.key().substr(prefix.size()), item.value());
  }
}

void add_all(StateDict& tensors, const StateDict& more) {
  for (const auto& item : more) {
    TORCH_CHECK_VALUE(item.value().defined(),
                      "[save_pretrained] head must have tensors. Got an "
                      "undefined tensor as ",
                      item.key());
    TORCH_CHECK_VALUE(!tensors.contains(item.key()),
                      "[save_pretrained] head must have names that are not the encoder's or those "
                      "of rest_of. Got ",
                      item.key());
    const at::Tensor tensor = item.value().detach();
    tensors.insert(item.key(), tensor.is_floating_point() ? tensor.to(at::kFloat) : tensor);
  }
}

// A program may have changed modules, whose sizes are then not those of the configuration.
void check_sizes(const StateDict& tensors, const EncoderConfig& config, const std::string& folder) {
  const std::string& prefix = config.options.origin().prefix;
  const io::MemorySource memory(tensors, torch::nn::Module());
  const ZeroBiases source(memory, absent_biases(config, prefix));
  encoder_plan(
      kSavePretrained, folder, config, source,
      encoder_load_options(config, source, prefix).allow_missing(true).allow_unexpected(true));
}

// Where the encoder's tensors go: as in the folder whose rest is kept, below the prefix of models
// with a head if there is one, and else as they came. The part of a pair that is saved alone has no
// prefix. Llama's and Qwen's class for questions alone has the old prefix.
void set_origin(SavedConfig& saved, const SavePretrainedOptions& options, const RestOfFolder& rest,
                bool has_head, bool has_questions) {
  encoder::Origin& origin = saved.encoder.options.origin();
  if (!options.rest_of().empty()) {
    origin.prefix = rest.origin.prefix;
    origin.layout = rest.origin.layout;
    return;
  }
  const std::string_view own = saved.encoder.model.prefix;
  const bool has_part = own == "text_model." || own == "vision_model." || own == "language_model.";
  if (own == "vision_encoder.") {  // of SAM, whose class of it has it inside as well
    origin.prefix = own;
    return;
  }
  if (saved.head && !saved.head->structure.has_prefix) {
    origin.prefix.clear();
  } else if (has_head) {
    const std::string_view old = saved.encoder.model.old_prefix;
    origin.prefix = has_questions && old == "transformer." ? old : own;
  } else if (has_part) {
    origin.prefix.clear();
  } else if (saved.is_part && origin.prefix.empty()) {  // which is no model alone: T5Gemma's
    origin.prefix = saved.encoder.model.old_prefix;
  } else if (origin.prefix.empty()) {  // OPT's class without a head has `decoder.`
    origin.prefix = own.substr(own.find('.') + 1);
  }
}

// The class of an encoder alone, if the configuration is of that: T5EncoderModel in place of
// T5Model, which has a decoder.
std::string class_without_decoder(const nlohmann::json& config, const std::string& base_class) {
  constexpr std::string_view kModel = "Model";
  if (!base_class.ends_with(kModel)) return base_class;
  const std::string alone =
      base_class.substr(0, base_class.size() - kModel.size()) + "EncoderModel";
  const auto classes = config.find("architectures");
  const bool is_alone = classes != config.end() && *classes == nlohmann::json::array({alone});
  return is_alone ? alone : base_class;
}

void set_architecture(SavedConfig& saved, const SavePretrainedOptions& options,
                      const std::string& own_class) {
  if (!options.architecture().empty()) {
    saved.object["architectures"] = {options.architecture()};
  } else if (options.rest_of().empty() || !saved.object.contains("architectures")) {
    TORCH_CHECK_VALUE(!own_class.empty(),
                      "[save_pretrained] SavePretrainedOptions::architecture must be the class of ",
                      saved.encoder.model.type, " in transformers. Got no class");
    saved.object["architectures"] = {own_class};
  }
}

// Those that are not the head's.
StateDict without(const StateDict& tensors, const std::set<std::string>& names) {
  StateDict others;
  for (const auto& item : tensors) {
    if (names.count(item.key()) == 0) others.insert(item.key(), item.value());
  }
  return others;
}

// `classifier` is null for an encoder alone.
PretrainedFolder contents_of(const EncoderImpl& model, const ClassifierImpl* classifier,
                             const std::string& folder, const SavePretrainedOptions& options,
                             bool is_in_class) {
  const torch::NoGradGuard no_grad;
  check_target(model.options.origin().folder, folder, options);
  TORCH_CHECK_VALUE(!model.transformer || classifier != nullptr,
                    "[save_pretrained] an encoder with a decoder must be saved with its head. Got "
                    "the encoder alone");
  SavedConfig saved = saved_config(model, options, classifier);
  RestOfFolder rest;
  if (!options.rest_of().empty()) rest = rest_of_folder(saved.encoder, options.rest_of());
  if (model.transformer) rest.tensors = StateDict();  // it is whole
  set_origin(saved, options, rest, is_in_class || !options.head().is_empty(),
             classifier != nullptr && classifier->options.kind() == head::Kind::Question);
  std::string base_class = saved.encoder.model.model_class;
  if (base_class.empty())
    base_class = hf::model_class_of(saved.object["model_type"].get<std::string>());
  const bool has_class = classifier != nullptr && !base_class.empty();
  set_architecture(saved, options,
                   has_class ? head_class(base_class, saved.encoder.model, *saved.head)
                             : class_without_decoder(saved.object, base_class));
  StateDict tensors = model.transformer ? decoder_tensors(model, saved.encoder, folder)
                                        : encoder_tensors(model, saved.encoder);
  if (!model.transformer) check_sizes(tensors, saved.encoder, folder);
  const StateDict head = classifier == nullptr
                             ? options.head()
                             : head_tensors(*classifier, *saved.head, saved.encoder.settings);
  add_all(tensors,
          saved.head ? without(rest.tensors, names_of_head(saved.head->structure)) : rest.tensors);
  add_all(tensors, head);
  if (auto* const save_more = saved.encoder.structure.save)
    save_more(tensors, saved.encoder, model);
  if (options.rest_of().empty() && !options.allow_missing()) {
    const std::string name = saved.object["architectures"][0];
    const bool is_base = name == base_class;
    if (is_base) check_has_pooler(saved, tensors, name);
    // A head on an encoder alone has no decoder beside it: T5ForTokenClassification.
    const bool has_decoder = saved.encoder.structure.beside == std::string_view("decoder");
    if (is_base || (classifier != nullptr && !has_decoder)) {
      add_beside(tensors, saved.encoder, model.options.origin().folder);
      check_has_beside(saved.encoder, tensors, name);
    }
  }
  PretrainedFolder contents;
  contents.config = std::move(saved.object);
  contents.tensors = std::move(tensors);
  contents.max_shard_bytes = options.max_shard_bytes();
  copy_input_files(contents, folder, options.tokenizer_from(),
                   options.rest_of().empty() ? model.options.origin().folder : options.rest_of());
  return contents;
}

}  // namespace

StateDict encoder_parts(const EncoderImpl& model, const EncoderConfig& config) {
  const LoadOptions names = encoder_save_options(config);
  const io::FormatNames format = encoder_format_names(config);
  const Seq2SeqStructure* const whole = config.model.seq2seq;  // whose tables may be apart
  const bool are_tied =
      whole == nullptr || whole->family->vocabulary(config.settings, *whole).are_tied;
  StateDict tensors;
  const auto parameters = model.named_parameters();
  for (const auto& item : parameters) {
    const at::Tensor tensor = item.value().detach().to(at::kFloat);
    if (format.optional.count(item.key()) != 0) {
      check_zeros(item.key(), tensor, config.settings, "qkv_bias");
      continue;
    }
    const auto tied = std::find_if(format.tied.begin(), format.tied.end(),
                                   [&](const auto& one) { return one.name == item.key(); });
    auto in_file = io::names_in_file(item.key(), names);
    if (tied != format.tied.end() && are_tied) in_file = {names.prefix() + tied->alias};
    if (in_file.empty()) in_file = {names.prefix() + item.key()};
    const auto layer = item.key().substr(0, item.key().rfind("in_proj_"));
    const auto* const out = parameters.find(layer + "out_proj.weight");
    const bool convolves = config.structure.mixing == Mixing::Convolution;  // half of its columns
    add_packed(tensors, in_file, tensor, out == nullptr ? 0 : out->size(1) / (convolves ? 2 : 1));
  }
  for (const auto& item : model.named_buffers()) {
    if (item.key().find(".batch_norm.") == std::string::npos &&
        !item.key().ends_with(".output_factor"))
      continue;
    add_packed(tensors, io::names_in_file(item.key(), names), item.value(), 0);
  }
  return tensors;
}

PretrainedFolder pretrained_folder_of(const Encoder& model, const std::string& folder,
                                      const SavePretrainedOptions& options, bool is_in_class) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[save_pretrained] the model must not be an empty holder");
  return contents_of(*model, nullptr, folder, options, is_in_class);
}

void save_pretrained(const Encoder& model, const std::string& folder,
                     const SavePretrainedOptions& options) {
  write_pretrained(kSavePretrained, folder, pretrained_folder_of(model, folder, options));
}

PretrainedFolder pretrained_folder_of(const Classifier& model, const std::string& folder,
                                      const SavePretrainedOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[save_pretrained] the model must not be an empty holder");
  TORCH_CHECK_VALUE(options.head().is_empty(),
                    "[save_pretrained] SavePretrainedOptions::head must be empty for a Classifier, "
                    "which has its own. Got ",
                    options.head().begin()->key());
  return contents_of(*model->encoder, model.get(), folder, options, /*is_in_class=*/true);
}

void save_pretrained(const Classifier& model, const std::string& folder,
                     const SavePretrainedOptions& options) {
  write_pretrained(kSavePretrained, folder, pretrained_folder_of(model, folder, options));
}

}  // namespace posenc
