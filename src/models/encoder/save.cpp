// save_pretrained() of an encoder.

#include <torch/nn/module.h>

#include <algorithm>
#include <filesystem>

#include "io/load/key_map.h"
#include "io/load/source.h"
#include "models/encoder/names.h"
#include "models/encoder/parts.h"
#include "models/encoder/rest.h"
#include "models/encoder/save_config.h"
#include "models/hf/model_class.h"
#include "models/model_folder.h"
#include "models/pretrained/write_folder.h"
#include "posenc/models/save_pretrained.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSavePretrained = "save_pretrained";

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code unknown;
  return !a.empty() && fs::equivalent(a, b, unknown);
}

void check_target(const EncoderImpl& model, const std::string& folder,
                  const SavePretrainedOptions& options) {
  TORCH_CHECK_VALUE(options.max_shard_bytes() > 0,
                    "[save_pretrained] max_shard_bytes must be positive. Got ",
                    options.max_shard_bytes());
  const bool replaces = is_same_folder(model.options.origin().folder, folder) ||
                        is_same_folder(options.rest_of(), folder);
  TORCH_CHECK_VALUE(!replaces || options.overwrite(),
                    "[save_pretrained] folder must not be the one that the encoder was loaded "
                    "from, unless SavePretrainedOptions::overwrite allows it. Got ",
                    folder);
}

// Adds a tensor under its name in the file, or the rows of a packed one under theirs: queries, keys
// and values, of which the last two have the same number of rows, or the two halves of gates.
void add_tensor(StateDict& tensors, const std::vector<std::string>& names, const at::Tensor& tensor,
                int64_t query_rows) {
  if (names.size() == 1) {
    tensors.insert(names.front(), tensor);
    return;
  }
  const int64_t begin = names.size() == 2 ? 0 : query_rows;
  const int64_t rows = (tensor.size(0) - begin) / 2;
  std::vector<int64_t> first = {begin, begin + rows, tensor.size(0)};
  if (names.size() == 3) first.insert(first.begin(), 0);
  for (std::size_t i = 0; i < names.size(); ++i)
    tensors.insert(names[i], tensor.slice(0, first[i], first[i + 1]));
}

// The weight (out, in / groups, 1) of a grouped convolution that is Linear's (out, in).
at::Tensor grouped(const std::string& name, const at::Tensor& weight, int64_t groups) {
  const int64_t out = weight.size(0) / groups, in = weight.size(1) / groups;
  const at::Tensor blocks = weight.view({groups, out, groups, in}).diagonal(0, 0, 2);
  TORCH_CHECK_VALUE(blocks.count_nonzero().equal(weight.count_nonzero()), "[save_pretrained] ",
                    name, " must be zero between the ", groups,
                    " groups of the convolution that it is in transformers. Got other numbers");
  return blocks.permute({2, 0, 1}).reshape(
      {weight.size(0), in, 1});  // (out, in, g) -> (g, out, in)
}

// The matrices (groups, in / groups, out / groups) of a linear layer in groups that is Linear's.
at::Tensor blocks_of(const std::string& name, const at::Tensor& weight, int64_t groups) {
  const int64_t out = weight.size(0) / groups, in = weight.size(1) / groups;
  const at::Tensor blocks = weight.view({groups, out, groups, in}).diagonal(0, 0, 2);
  TORCH_CHECK_VALUE(blocks.count_nonzero().equal(weight.count_nonzero()), "[save_pretrained] ",
                    name, " must be zero between the ", groups,
                    " groups of the linear layer that it is in transformers. Got other numbers");
  return blocks.permute({2, 1, 0}).contiguous();  // (out, in, g) -> (g, in, out)
}

// Undoes what the names' rules change besides the names, where the file has a weight otherwise.
void change_back(StateDict& tensors, const LoadOptions& names, const EncoderConfig& config) {
  for (auto& item : tensors) {
    const std::string_view own = std::string_view(item.key()).substr(names.prefix().size());
    const auto found = io::find_rule(own, names.key_map());
    if (!found) continue;
    const KeySource& source = names.key_map()[found->rule].sources.items[found->source];
    if (source.change() == KeySource::Change::Ungroup)
      item.value() = grouped(item.key(), item.value(), source.first());
    if (source.change() == KeySource::Change::BlockDiagonal) {
      const int64_t groups = config.settings.whole("num_groups", 1, INT32_MAX);
      item.value() = blocks_of(item.key(), item.value(), groups);
    }
    if (source.change() == KeySource::Change::Squeeze)
      item.value() = item.value().unsqueeze(source.first());
  }
}

void check_zeros(const std::string& name, const at::Tensor& tensor, const Settings& settings) {
  TORCH_CHECK_VALUE(tensor.eq(0).all().item<bool>(), settings.where(),
                    "qkv_bias must be true for an encoder whose ", name,
                    " is not zeros. Got false");
}

// The frequencies of the rotary embedding, which ESM's class has among its weights.
void add_frequencies(StateDict& tensors, const EncoderImpl& model,
                     const EncoderStructure& structure, const std::string& prefix) {
  if (*structure.frequencies == '\0') return;
  const auto& rotary =
      model.encoder->layers->ptr<TransformerEncoderLayerImpl>(0)->self_attn->rotary;
  if (rotary) tensors.insert(prefix + structure.frequencies, rotary->inv_freq.to(at::kFloat));
}

// The encoder's tensors as a file of transformers has them.
StateDict encoder_tensors(const EncoderImpl& model, const EncoderConfig& config) {
  const LoadOptions names = encoder_save_options(config);
  const io::FormatNames format = encoder_format_names(config);
  const EncoderLayerKeys& keys =
      config.structure.keys[static_cast<std::size_t>(config.options.origin().layout)];
  StateDict tensors;
  const auto parameters = model.named_parameters();
  for (const auto& item : parameters) {
    const at::Tensor tensor = item.value().detach().to(at::kFloat);
    if (format.optional.count(item.key()) != 0) {
      check_zeros(item.key(), tensor, config.settings);
      continue;
    }
    const auto tied = std::find_if(format.tied.begin(), format.tied.end(),
                                   [&](const auto& one) { return one.name == item.key(); });
    auto in_file = io::names_in_file(item.key(), names);
    if (tied != format.tied.end()) in_file = {names.prefix() + tied->alias};
    if (in_file.empty()) in_file = {names.prefix() + item.key()};
    if (keys.gate_first && item.key().find(".linear1.") != std::string::npos) {
      const auto halves = tensor.chunk(2);
      add_tensor(tensors, in_file, at::cat({halves[1], halves[0]}), 0);
      continue;
    }
    const auto layer = item.key().substr(0, item.key().rfind("in_proj_"));
    const auto* const out = parameters.find(layer + "out_proj.weight");
    const bool convolves = config.structure.mixing == Mixing::Convolution;  // half of its columns
    add_tensor(tensors, in_file, tensor, out == nullptr ? 0 : out->size(1) / (convolves ? 2 : 1));
  }
  change_back(tensors, names, config);
  add_frequencies(tensors, model, config.structure, names.prefix());
  return tensors;
}

bool has_name_with(const StateDict& tensors, const std::string& text) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const auto& item) { return item.key().find(text) != std::string::npos; });
}

// XLM's languages are optional.
std::string module_beside(const EncoderConfig& config) {
  const std::string beside = config.structure.beside;
  if (beside != "lang_embeddings") return beside;
  const Settings& settings = config.settings;
  const bool has_it = settings.flag("use_lang_emb") && settings.whole("n_langs", 1, INT32_MAX) > 1;
  return has_it ? beside : "";
}

// What the class has that is named in `architectures`, as far as it is known.
void check_complete(const SavedConfig& saved, const StateDict& tensors,
                    const std::string& base_class) {
  const EncoderConfig& config = saved.encoder;
  const EncoderStructure& structure = config.structure;
  const std::string remedy =
      ": SavePretrainedOptions::rest_of copies it from a folder, and allow_missing has it drawn at "
      "random by from_pretrained()";
  EncoderConfig whole = config;
  whole.options.pooling(saved.pooling);
  const bool has_own = !config.model.has_pooler || !has_pooling_weights(whole.options) ||
                       has_name_with(tensors, structure.pooler);
  TORCH_CHECK_VALUE(has_own, "[save_pretrained] the encoder must have a pooler to be a ",
                    base_class, remedy, ". Got no pooler");
  const std::string beside = module_beside(config);
  TORCH_CHECK_VALUE(beside.empty() || has_name_with(tensors, beside + "."), "[save_pretrained] a ",
                    base_class, " must have its ", beside, remedy, ". Got only the encoder");
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

// Where the encoder's tensors go: as in the folder whose rest is kept, below the prefix of models
// with a head if there is one, and else as they came. The part of a pair that is saved alone has no
// prefix.
void set_place(SavedConfig& saved, const SavePretrainedOptions& options, const RestOfFolder& rest) {
  encoder::Origin& origin = saved.encoder.options.origin();
  if (!options.rest_of().empty()) {
    origin.prefix = rest.origin.prefix;
    origin.layout = rest.origin.layout;
    return;
  }
  const std::string_view own = saved.encoder.model.prefix;
  const bool has_part = own == "text_model." || own == "vision_model.";
  if (!options.head().is_empty()) {
    origin.prefix = saved.encoder.model.prefix;
  } else if (has_part) {
    origin.prefix.clear();
  }
}

void set_architecture(SavedConfig& saved, const SavePretrainedOptions& options,
                      const std::string& base_class) {
  if (!options.architecture().empty()) {
    saved.object["architectures"] = {options.architecture()};
  } else if (options.rest_of().empty() || !saved.object.contains("architectures")) {
    TORCH_CHECK_VALUE(!base_class.empty(),
                      "[save_pretrained] SavePretrainedOptions::architecture must be the class of ",
                      saved.encoder.model.type, " in transformers. Got no class");
    saved.object["architectures"] = {base_class};
  }
}

}  // namespace

void save_pretrained(const Encoder& model, const std::string& folder,
                     const SavePretrainedOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[save_pretrained] the model must not be an empty holder");
  const torch::NoGradGuard no_grad;
  check_target(*model, folder, options);
  SavedConfig saved = saved_config(*model, options);
  RestOfFolder rest;
  if (!options.rest_of().empty()) rest = rest_of_folder(saved.encoder, options.rest_of());
  set_place(saved, options, rest);
  const std::string base_class(hf::model_class_of(saved.object["model_type"].get<std::string>()));
  set_architecture(saved, options, base_class);
  StateDict tensors = encoder_tensors(*model, saved.encoder);
  check_stated_sizes(kSavePretrained, folder, io::MemorySource(tensors, torch::nn::Module()),
                     encoder_stated_sizes(saved.encoder, saved.encoder.options.origin().prefix));
  add_all(tensors, rest.tensors);
  add_all(tensors, options.head());
  const bool is_base = saved.object["architectures"][0] == base_class && options.rest_of().empty();
  if (is_base && !options.allow_missing()) check_complete(saved, tensors, base_class);
  write_pretrained(kSavePretrained, folder, saved.object, tensors, options.max_shard_bytes());
}

}  // namespace posenc
