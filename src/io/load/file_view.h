#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "io/manifest/open_weights.h"

namespace posenc::io {

/// A strided tensor in a file, all of it inside the file.
struct FileView {
  std::shared_ptr<const InputFile> file;
  uint64_t begin;  ///< offset in bytes of the element at index zero
  at::ScalarType type;
  std::vector<int64_t> sizes, strides;
  bool conj, negative;

  bool is_contiguous() const;
  int64_t numel() const;
  /// The part at indices [start, start + count) of `axis`.
  FileView narrow(std::size_t axis, int64_t start, int64_t count) const;
  int64_t extent() const;  ///< elements from the first to the last, including gaps
};
FileView view_of(const OpenWeights& weights, const ManifestTensor& tensor);

/// Copies into `target`, which has the same sizes, any device and any dtype: directly into its
/// memory if possible, otherwise in blocks of a few MB.
void copy_view(const FileView& view, const at::Tensor& target);

/// Whether two views hold the same bytes.
bool equal_views(const FileView& a, const FileView& b);

/// Throws WeightsError if the view is of bools and has bytes other than 0 and 1: any other value in
/// a C++ bool is undefined behaviour.
void check_bools(const FileView& view);

}  // namespace posenc::io
