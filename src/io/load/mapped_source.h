#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/load/key_map.h"
#include "io/load/mismatch.h"
#include "io/load/source.h"

namespace posenc::io {

/// The tensors of a source as LoadOptions turn them into a module's: those after the prefix,
/// renamed, changed and packed. The source has to outlive it.
class MappedSource {
 public:
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  /// A tensor of the source within an entry.
  struct Part {
    std::size_t index = kAbsent;      ///< in the source
    std::string name = {};            ///< in the source, of a part that is absent too
    const KeySource* how = nullptr;   ///< null where no rule matched
    std::vector<int64_t> sizes = {};  ///< after its change; those in the source if there is none
  };
  struct Entry {
    std::optional<std::string> name;  ///< in the module; nothing where the map drops it
    std::vector<Part> parts;          ///< in the order of their rows
    std::vector<int64_t> sizes = {};  ///< of all, where faults() has none
  };

  MappedSource(const TensorSource& source, const LoadOptions& options);
  MappedSource(const MappedSource&) = delete;
  MappedSource& operator=(const MappedSource&) = delete;

  const TensorSource& source() const { return source_; }
  const std::vector<Entry>& entries() const { return entries_; }
  /// The entry's names in the source: 'q', 'k' and 'v'.
  std::string label(std::size_t index) const;
  /// A part's entry in the source, for a part that is there.
  const TensorSource::Entry& entry_of(const Part& part) const;

  /// What keeps the entry from being put together for a tensor `target` of these sizes.
  std::vector<Fault> faults(std::size_t index, const std::string& target,
                            at::IntArrayRef sizes) const;

  /// The rest is for entries without faults. The entry in memory that is not the module's, of that
  /// dtype. It may be shared with the source.
  at::Tensor tensor(std::size_t index, at::ScalarType type) const;
  /// Its first `count` rows along `axis`, on the CPU, of a dtype that holds their values.
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const;
  /// Copies the entry into `target`, of the same shape, with a cast where the dtype is another.
  void copy_to(std::size_t index, const at::Tensor& target) const;
  /// Whether the two, of the same sizes, give a tensor of that dtype the same bytes.
  bool equal(std::size_t a, std::size_t b, at::ScalarType type) const;
  /// Throws WeightsError for bytes that no tensor of that dtype may hold.
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
