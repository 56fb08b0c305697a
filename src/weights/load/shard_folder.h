#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "weights/common/keyed_hash.h"
#include "weights/load/source.h"
#include "weights/manifest/open_weights.h"

namespace posenc::io {

/// A folder of safetensors files that hold parts of tensors, as torch.distributed.checkpoint writes
/// it: each file's metadata DCP_SHARDING_INFO records where its parts begin. Parts may be split
/// along any dimensions; together they have to be the whole tensor.
class ShardFolder : public TensorSource {
 public:
  /// Throws WeightsError: NotRegular for a folder without such files, Shard for parts that are
  /// missing or overlap.
  explicit ShardFolder(const std::string& folder);

  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;
  void check_values(std::size_t index) const override;
  void check_unchanged() const override;

 private:
  struct Part {
    const OpenWeights* file;
    const ManifestTensor* tensor;
    std::vector<int64_t> begins;  // in the whole tensor, for each axis
  };

  void add_parts(const OpenWeights& file);
  /// Throws unless the parts of the entry make up the whole tensor.
  void check_cover(std::size_t index);
  /// Reads the part of these sizes that begins at the first element of the entry.
  at::Tensor corner(std::size_t index, const std::vector<int64_t>& sizes) const;
  /// Copies what `part` holds of `target`, which begins at the first element of the entry.
  void copy_part(const Part& part, const at::Tensor& target) const;
  /// The part in its file, which is opened, and another one closed, if need be.
  FileView view(const Part& part) const;
  void keep_open(const OpenWeights& file) const;

  std::vector<std::unique_ptr<OpenWeights>> files_;
  NameMap<std::size_t> index_;                   // of entries, by name
  std::vector<std::vector<Part>> parts_;         // of each entry
  mutable std::deque<const OpenWeights*> open_;  // oldest first
};

}  // namespace posenc::io
