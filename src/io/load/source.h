#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace posenc::io {

/// Named tensors, in memory or in a file; each is read only when requested.
class TensorSource {
 public:
  struct Entry {
    std::string name;
    at::ScalarType dtype = at::kFloat;
    std::vector<int64_t> sizes = {};
    std::string fault = "";   ///< why it cannot be loaded: `must ... Got ...`; "" for most
    bool is_tensor = true;    ///< an object of another kind is not an unexpected tensor
    bool is_module = false;   ///< a whole module
    std::string remedy = "";  ///< for a module or another object that may hold the missing weights
  };

  virtual ~TensorSource() = default;

  const std::vector<Entry>& entries() const { return entries_; }
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

}  // namespace posenc::io
