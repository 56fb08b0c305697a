#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"
#include "weights/common/file_view.h"
#include "weights/manifest/open_weights.h"

namespace posenc::io {

/// Named tensors, in memory or in a file; each is read only when requested.
class TensorSource {
 public:
  struct Entry {
    std::string name;
    at::ScalarType dtype = at::kFloat;
    std::vector<int64_t> sizes = {};
    std::string fault = "";      ///< why it cannot be loaded: `must ... Got ...`; "" for most
    bool is_tensor = true;       ///< an object of another kind is not an unexpected tensor
    bool is_unreadable = false;  ///< a tensor that cannot be read, which is not unexpected either
    bool is_module = false;      ///< a whole module
    std::string remedy = "";  ///< for a module or another object that may hold the missing weights
  };

  virtual ~TensorSource() = default;

  const std::vector<Entry>& entries() const { return entries_; }
  /// The name of an entry in the file, which may have been renamed since.
  virtual std::string name_in_file(std::size_t index) const { return entries_[index].name; }
  /// The names in the file of tensors that are no entries, since they were left out.
  virtual std::vector<std::string> left_out() const { return {}; }
  /// How the error's reason begins: "the state dict ", or nothing if the error names a file.
  virtual std::string subject() const { return ""; }

  /// The entry, in memory that is not the module's. It may be shared with the source.
  virtual at::Tensor tensor(std::size_t index) const = 0;
  /// Its first `count` rows along `axis`.
  virtual at::Tensor head(std::size_t index, int64_t axis, int64_t count) const = 0;
  /// Copies the entry into `target`, which has the same shape, with a cast if its dtype differs.
  virtual void copy_to(std::size_t index, const at::Tensor& target) const = 0;
  /// Whether two entries hold the same bytes.
  virtual bool equal(std::size_t a, std::size_t b) const = 0;
  /// Throws WeightsError for bytes that are invalid in a tensor of that dtype.
  virtual void check_values(std::size_t) const {}
  /// Throws WeightsError if a file was written to while it was read.
  virtual void check_unchanged() const {}

 protected:
  std::vector<Entry> entries_;
};

/// Throws WeightsError for an entry whose values cannot be read.
void refuse_unreadable_entry(const TensorSource::Entry& entry);

/// Copies the view into `target`, which has the same sizes and any device and dtype: directly into
/// its memory if possible, otherwise in windows of a few MB.
void copy_view(const FileView& view, const at::Tensor& target);

/// The tensors of a file, or of the shards of one.
class FileSource : public TensorSource {
 public:
  explicit FileSource(const std::string& path);

  const Manifest& manifest() const { return weights_.manifest; }

  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;
  void check_values(std::size_t index) const override;
  void check_unchanged() const override { weights_.check_unchanged(); }

 private:
  FileView view(std::size_t index) const;
  static at::Tensor in_memory(const FileView& view);
  /// Runs `work`, and adds the tensor and the file that holds it to any error.
  template <typename Work>
  auto reading(std::size_t index, Work&& work) const;

  OpenWeights weights_;
};

/// The tensors of a state dict.
class MemorySource : public TensorSource {
 public:
  /// Tensors in memory of `module` are copied first, as that memory could be overwritten before
  /// they are read.
  MemorySource(const StateDict& tensors, const torch::nn::Module& module);

  std::string subject() const override { return "the state dict "; }
  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;

 private:
  std::vector<at::Tensor> tensors_;
};

/// Some tensors of a source, maybe under other names. The source has to outlive it.
class SelectedSource : public TensorSource {
 public:
  std::string subject() const override { return source_.subject(); }
  std::string name_in_file(std::size_t index) const override;
  std::vector<std::string> left_out() const override;
  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;
  void check_values(std::size_t index) const override;
  void check_unchanged() const override { source_.check_unchanged(); }

 protected:
  explicit SelectedSource(const TensorSource& source) : source_(source) {}
  /// Adds the source's entry `index` as `entry`.
  void select(std::size_t index, Entry entry);
  void leave_out(std::size_t index);

  std::size_t selected() const { return index_.size(); }

 private:
  const TensorSource& source_;
  std::vector<std::size_t> index_;  // in the source, of the first entries
  std::vector<std::string> left_out_;
};

/// The tensors of a source under the names that a key map gives them: what a reader of a format
/// sees of a file whose names are not those of the format.
class RenamedSource : public SelectedSource {
 public:
  /// Renames what follows `prefix`, which stays in the names; names without it do not change. A
  /// tensor whose new name is empty is left out.
  RenamedSource(const TensorSource& source, const std::string& prefix, const KeyMap& map);

  /// The patterns of the map that no name took.
  const std::vector<std::string>& unused_patterns() const { return unused_patterns_; }

 private:
  std::vector<std::string> unused_patterns_;
};

/// Throws c10::ValueError, naming the public function `caller`, for a map with rules that do more
/// than rename and drop.
void check_renames(const char* caller, const KeyMap& map);

}  // namespace posenc::io
