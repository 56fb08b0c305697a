#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "io/manifest/open_weights.h"

namespace posenc::io {

/// A strided tensor in a file. Its extent lies inside the file.
struct FileView {
  std::shared_ptr<const InputFile> file;
  uint64_t begin;  ///< byte of the element at index zero
  at::ScalarType type;
  std::vector<int64_t> sizes, strides;
  bool conj, negative;

  bool is_contiguous() const;
  int64_t numel() const;
  /// The part at indices [start, start + count) of `axis`.
  FileView narrow(std::size_t axis, int64_t start, int64_t count) const;
  int64_t extent() const;  ///< elements from the first to the last, gaps included
};
FileView view_of(const OpenWeights& weights, const ManifestTensor& tensor);

/// Copies into `target`, of the same sizes, on any device and of any dtype: straight into its
/// memory where that is possible, else by blocks of a few MB.
void copy_view(const FileView& view, const at::Tensor& target);

/// Whether two views hold the same bytes.
bool equal_views(const FileView& a, const FileView& b);

/// Throws WeightsError where the view is of bools and has bytes other than 0 and 1: a C++ bool of
/// another value is undefined behaviour.
void check_bools(const FileView& view);

}  // namespace posenc::io
