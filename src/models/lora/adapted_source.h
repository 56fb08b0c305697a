#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/lora/parts.h"
#include "models/types/decoder_structures.h"
#include "weights/load/source.h"

namespace posenc::lora {

/// An adapter, and how much of it is added.
struct WeightedAdapter {
  LoraAdapter adapter;
  double scale = 1.0;
};

/// Loads them. Throws c10::ValueError, naming `caller`, for a factor that is not finite.
std::vector<WeightedAdapter> load_all(const char* caller,
                                      const std::vector<AdapterFolder>& folders);

/// What the names of a model's tensors may begin with, and what it is.
struct ModelNames {
  std::string model_type;
  std::vector<std::string> prefixes;  ///< of the model inside one with a head, such as `bert.`
  /// How tensors become those of posenc's model, by all names that files have for them: where an
  /// adapter has others than the file, it is merged into what becomes the same.
  KeyMap map = {};
  /// Rules of layers in the file that the model does not have; no adapter meets them.
  KeyMap later = {};
  const DecoderStructure* decoder = nullptr;  ///< whose output layer may have one of two names
};

/// The tensors of a model's file after adapters have been merged into them, under the file's names:
/// before a key map packs, splits or transposes them. The source has to outlive it.
class AdaptedSource : public io::SelectedSource {
 public:
  /// Throws c10::ValueError and WeightsError, naming the adapter's folder, for a module or a tensor
  /// of an adapter that is not the model's. `prefix` is LoadOptions::prefix.
  AdaptedSource(const io::TensorSource& source, std::vector<WeightedAdapter> adapters,
                const ModelNames& names, const std::string& prefix = "");

  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;
  void check_values(std::size_t index) const override;
  std::vector<std::string> left_out() const override;

  /// Whether an adapter changes the entry, or replaces it.
  bool is_changed(std::size_t index) const { return changes_.contains(index); }
  bool is_changed(const std::string& name) const;
  /// Has an entry `name`, if there is none, with the base's values of the entry `other`: what an
  /// output layer is that is tied to a table which an adapter changes. `with_changes` are those
  /// after adapters. Returns whether it was added.
  bool keep(const std::string& name, const std::string& other, bool with_changes = false);
  /// Throws c10::ValueError unless each target among the tensors that a model reads, by their
  /// names, has a part of the adapter.
  void check_targets(const std::set<std::string>& read) const;
  /// Whether there is any adapter.
  bool empty() const { return adapters_.empty(); }
  /// The settings of the adapters.
  const std::vector<WeightedAdapter>& adapters() const { return adapters_; }

 private:
  struct Change {
    at::Tensor value = {};                    // in place of the source's, if it is defined
    std::map<int64_t, at::Tensor> rows = {};  // in place of the source's, by the first of them
    std::vector<Placed> layers = {};
    std::vector<at::Tensor> added = {};  // to a bias
    std::size_t like = kNone;            // an entry of the source that it is
    bool is_like_changed = false;        // with changes
  };
  // Rows of a tensor in an adapter, and where they are in the source.
  struct Place {
    std::size_t index;
    int64_t begin = -1;          // in the source's tensor; -1: all of it
    int64_t from = 0, rows = 0;  // of the adapter's
  };
  struct Mapped {
    std::size_t index, part, parts;
    KeySource::Change change;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void add_layer(std::size_t adapter, const std::string& module, const LowRank& layer);
  void add_value(std::size_t adapter, const std::string& name, const at::Tensor& value);
  bool is_later(const std::string& bare_name) const;
  void refuse_ignored(const std::string& module, bool is_added) const;
  void check_shapes(const std::string& module, const LowRank& layer, const Place& place) const;
  std::vector<Place> places_of(const std::string& name, int64_t rows) const;
  std::vector<Place> mapped_places(const std::string& name, int64_t rows) const;
  bool has_other_names(std::size_t adapter) const;
  std::vector<std::string> mapped_modules(std::size_t adapter,
                                          const std::set<std::string>& read) const;
  std::size_t find(const std::string& name) const;
  std::string bare(const std::string& name) const;
  std::string trained_name(std::size_t adapter, const std::string& name) const;
  bool is_of_head(const std::string& name) const;
  bool is_of_own_head(const std::string& name) const;
  void check_matches(std::size_t adapter) const;
  std::string where(std::size_t adapter) const;
  at::Tensor base_of(std::size_t index) const;

  const io::TensorSource& source_;
  std::vector<WeightedAdapter> adapters_;
  std::vector<AdapterParts> parts_;  // of each
  std::vector<std::string> prefix_;  // of the names in each, such as `bert.`
  ModelNames names_;
  std::string given_;
  bool has_prefix_ = false;                     // whether the source's names have one
  std::map<std::string, std::size_t> by_name_;  // without prefixes
  std::map<std::size_t, Change> changes_;
  std::map<std::string, std::vector<Mapped>> mapped_;  // entries, by their names in posenc's model
  std::set<std::size_t> turned_;  // entries that are (in, out): weights of GPT-2's Conv1D
  std::vector<std::string> of_heads_;
};

}  // namespace posenc::lora
