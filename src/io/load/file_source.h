#pragma once

#include <string>
#include <vector>

#include "io/load/source.h"
#include "io/manifest/open_weights.h"

namespace posenc::io {

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

}  // namespace posenc::io
