#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weights/load/key_map.h"
#include "weights/load/mismatch.h"
#include "weights/load/source.h"

namespace posenc::io {

/// The tensors of a source after the prefix and the key map of LoadOptions: selected, renamed,
/// changed and packed into the tensors of a module. The source has to outlive it.
class MappedSource {
 public:
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  /// A tensor of the source that becomes an entry, or rows of one.
  struct Part {
    std::size_t index = kAbsent;            ///< in the source
    std::string name = {};                  ///< in the source, even if it is absent there
    const KeySource* key_source = nullptr;  ///< null if no rule matched
    std::vector<int64_t> sizes = {};        ///< after the rule's change, if any
  };
  struct Entry {
    std::optional<std::string> name;  ///< in the module; nullopt if the map drops it
    std::vector<Part> parts;          ///< in the order of their rows
    std::vector<int64_t> sizes = {};  ///< of all parts together, if faults() is empty
  };

  MappedSource(const TensorSource& source, const LoadOptions& options);
  MappedSource(const MappedSource&) = delete;
  MappedSource& operator=(const MappedSource&) = delete;

  const TensorSource& source() const { return source_; }
  const std::vector<Entry>& entries() const { return entries_; }
  /// The patterns of the key map that no name took.
  std::vector<std::string> unused_patterns() const;
  /// The names of an entry's parts, for messages: 'q', 'k' and 'v'.
  std::string label(std::size_t index) const;
  /// A part's entry in the source; the part must not be absent.
  const TensorSource::Entry& entry_of(const Part& part) const;

  /// Why the entry cannot be assembled for the module's tensor `target` of these sizes; empty if it
  /// can.
  std::vector<Fault> faults(std::size_t index, const std::string& target,
                            at::IntArrayRef sizes) const;

  /// The functions below are for entries without faults. Returns the entry in this dtype, in memory
  /// that is not the module's but may be the source's.
  at::Tensor tensor(std::size_t index, at::ScalarType type) const;
  /// Returns its first `count` rows along `axis`, on the CPU, in a dtype that represents their
  /// values.
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const;
  /// Copies the entry into `target`, which has the same shape, with a cast if its dtype differs.
  void copy_to(std::size_t index, const at::Tensor& target) const;
  /// Whether two entries of the same sizes give a tensor of this dtype the same bytes.
  bool equal(std::size_t a, std::size_t b, at::ScalarType type) const;
  /// Throws WeightsError for bytes that are invalid in a tensor of that dtype.
  void check_values(std::size_t index) const;

 private:
  static void finish(Entry& entry);
  static bool is_as_in_source(const Entry& entry);
  std::optional<Fault> fault(const Part& part, std::size_t index, const std::string& target,
                             at::IntArrayRef sizes) const;

  const TensorSource& source_;
  const KeyMap map_;  // parts point into it
  std::vector<Entry> entries_;
};

}  // namespace posenc::io
