#pragma once

// posenc-budget: one kind of adapters: its settings, tensors and folders

#include <torch/arg.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/export.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"

namespace posenc POSENC_EXPORT {

/// Which modules an adapter acts on, by their names in transformers: `target_modules` of PEFT.
class LoraTargets {
 public:
  /// What a target is chosen by.
  enum class Kind {
    OfModelType,  ///< what PEFT has for the model type: query and value of BERT
    Names,        ///< a name, or the end of one after a dot
    Pattern,      ///< a regular expression that matches the whole name
    AllLinear,    ///< all linear layers but for the output layer
  };

  /// Those of the model type.
  LoraTargets() = default;
  /// Modules whose name is one of these, or ends in a dot and one of these.
  LoraTargets(std::vector<std::string> names) : kind_(Kind::Names), names_(std::move(names)) {}
  /// The same.
  LoraTargets(std::initializer_list<std::string> names) : kind_(Kind::Names), names_(names) {}
  /// Modules whose whole name this regular expression matches.
  static LoraTargets pattern(std::string text) { return {Kind::Pattern, {std::move(text)}}; }
  /// All linear layers, but for the output layer.
  static LoraTargets all_linear() { return {Kind::AllLinear, {}}; }

  /// What they are chosen by.
  Kind kind() const { return kind_; }
  /// The names; the regular expression of a Pattern.
  const std::vector<std::string>& names() const { return names_; }

 private:
  LoraTargets(Kind kind, std::vector<std::string> names) : kind_(kind), names_(std::move(names)) {}

  Kind kind_ = Kind::OfModelType;
  std::vector<std::string> names_;
};

/// Which biases of the model an adapter replaces.
enum class LoraBias {
  None,      ///< none
  All,       ///< all
  LoraOnly,  ///< those of the modules that it acts on
};

/// Settings of a low-rank adapter, which adds to a weight W (out, in) a product of two narrow ones:
///
///     W' = W + s B A,   A (r, in),   B (out, r),   s = alpha / r, or alpha / sqrt(r) with rslora,
///
/// and with dora W' = m / |W + s B A| (W + s B A), where m (out) is trained and |.| is the norm of
/// each row. The names are those of `adapter_config.json` in PEFT, without `lora_` and `use_`.
///
/// Source: Hu et al., LoRA, 2021; Kalajdzievski, rsLoRA, 2023; Liu et al., DoRA, 2024; peft 0.21.
struct LoraConfig {
  /// The value of a setting for modules whose name a regular expression matches: the whole name, or
  /// what follows a dot in it.
  using Pattern = std::vector<std::pair<std::string, double>>;

  /// An adapter of that rank.
  LoraConfig(int64_t r = 8) : r_(r) {}

  TORCH_ARG(int64_t, r);               ///< the rank
  TORCH_ARG(double, alpha) = 8.0;      ///< the factor of the product, times r
  TORCH_ARG(bool, rslora) = false;     ///< divides alpha by the root of r
  TORCH_ARG(bool, dora) = false;       ///< trains the length of each row apart
  TORCH_ARG(double, dropout) = 0.0;    ///< of the input of A, in training
  TORCH_ARG(bool, lora_bias) = false;  ///< whether B has a bias
  /// Whether weights that it acts on are (in, out), as in GPT-2: for PEFT, which would warn; here
  /// the model says so.
  TORCH_ARG(bool, fan_in_fan_out) = false;
  TORCH_ARG(LoraTargets, targets) = {};                                       ///< what it acts on
  TORCH_ARG(LoraTargets, exclude) = LoraTargets(std::vector<std::string>());  ///< what it does not
  TORCH_ARG(Pattern, rank_pattern) = {};         ///< r of some modules; the first match counts
  TORCH_ARG(Pattern, alpha_pattern) = {};        ///< alpha of some modules
  TORCH_ARG(std::vector<int64_t>, layers) = {};  ///< layers_to_transform; none: all
  TORCH_ARG(std::vector<std::string>, layers_pattern) = {};  ///< what the number of a layer follows
  TORCH_ARG(std::vector<std::string>, modules_to_save) = {};  ///< modules that it replaces
  TORCH_ARG(LoraBias, bias) = LoraBias::None;                 ///< biases that it replaces
  TORCH_ARG(std::string, task_type) = "";                     ///< such as SEQ_CLS
  TORCH_ARG(std::string, base) = "";                          ///< base_model_name_or_path
};

/// Reads the adapter_config.json in a folder. Keys that it lacks have the defaults above, since old
/// files have few.
///
/// Errors: c10::ValueError, with the key, for another kind of adapter than LoRA, for settings that
/// change more than is described above, and for keys that are not known; WeightsError for the file.
LoraConfig read_lora_config(const std::string& folder);

/// An adapter of PEFT, without its model.
struct LoraAdapter {
  LoraConfig config;   ///< its settings
  StateDict tensors;   ///< float32, by their names in the file without `base_model.model.`
  std::string folder;  ///< that it was loaded from; empty if it was not loaded
};

/// Loads the adapter in a folder: adapter_config.json and adapter_model.safetensors, or
/// adapter_model.bin.
///
/// ```
/// using posenc::LoadOptions;
/// auto load = LoadOptions().adapters({{"adapters/retrieval", 1.0}});
/// auto model = posenc::load_encoder("models/base", load);  // merged: as fast as without
/// ```
///
/// Errors: those of read_lora_config(); WeightsError for the tensors, also for one whose name or
/// shape no adapter has.
LoraAdapter load_adapter(const std::string& folder);

/// Saves an adapter as PEFT does, which opens it: adapter_config.json and
/// adapter_model.safetensors. `base` is the model's name or folder, if it is not in its settings.
///
/// Errors: WeightsError for files; c10::ValueError for a folder that holds a model or an adapter.
void save_adapter(const LoraAdapter& adapter, const std::string& folder,
                  const std::string& base = "");

/// What merge_adapters() wrote.
struct MergedFolder {
  int64_t changed = 0;  ///< tensors that adapters changed, replaced or added
  /// Output layers that were tied to a table of tokens which an adapter changes, and which have the
  /// base's table now, as PEFT computes it; config.json then has tie_word_embeddings false.
  std::vector<std::string> untied;
};

/// Writes the folder of a model in which adapters have been merged, as save_pretrained() of
/// transformers does: every tensor of the base's weights, heads among them, in float32, its
/// config.json, and its other files as they are. `folder` is the base's, with
/// LoadOptions::adapters, or an adapter's (LoadOptions::base).
///
/// Errors: those of load_adapter(); c10::ValueError for a target that the base lacks, for `out` if
/// it is there already, and without an adapter; WeightsError for files.
MergedFolder merge_adapters(const std::string& folder, const std::string& out,
                            const LoadOptions& options);

/// Reads the one adapter of `options`, checks it against the model in `folder` and saves it with
/// save_adapter(): old files get all settings and safetensors.
///
/// Errors: those of merge_adapters() and save_adapter().
void rewrite_adapter(const std::string& folder, const std::string& out, const LoadOptions& options);

}  // namespace posenc
