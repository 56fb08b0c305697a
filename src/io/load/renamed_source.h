#pragma once

#include <string>
#include <vector>

#include "io/load/source.h"
#include "posenc/io/key_map.h"

namespace posenc::io {

/// The tensors of a source under the names that a key map gives them: what a reader of a format
/// sees of a file whose names are not those of the format. The source has to outlive it.
class RenamedSource : public TensorSource {
 public:
  /// Renames what follows `prefix`, which stays in the names; names without it do not change. A
  /// tensor whose new name is empty is left out.
  RenamedSource(const TensorSource& source, const std::string& prefix, const KeyMap& map);

  std::string subject() const override { return source_.subject(); }
  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;
  void check_values(std::size_t index) const override;
  void check_unchanged() const override { source_.check_unchanged(); }

 private:
  const TensorSource& source_;
  std::vector<std::size_t> index_;  // in the source, one per entry
};

/// Throws c10::ValueError, naming the public function `caller`, for a map with rules that do more
/// than rename and drop.
void check_renames(const char* caller, const KeyMap& map);

}  // namespace posenc::io
