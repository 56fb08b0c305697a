#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "posenc/weights/manifest.h"
#include "weights/common/file.h"

namespace posenc::io {

/// A strided tensor in a file. Its extent lies inside the file.
struct FileView {
  std::shared_ptr<const InputFile> file;
  uint64_t begin;  ///< byte of the element at index zero
  ManifestDtype dtype;
  std::vector<int64_t> sizes, strides;
  bool conj, negative;

  int64_t item() const { return item_size(dtype); }
  bool is_contiguous() const;
  int64_t numel() const;
  int64_t extent() const;  ///< elements from the first to the last, gaps included
  /// The part at indices [start, start + count) of `axis`.
  FileView narrow(std::size_t axis, int64_t start, int64_t count) const;
};
/// The tensor, whose storage begins at that byte of the file.
FileView view_of(std::shared_ptr<const InputFile> file, uint64_t storage_begin,
                 const ManifestTensor& tensor);

/// A part of a view in memory, its conj and neg bits resolved.
struct Window {
  const FileView& part;
  const std::vector<int64_t>& starts;  ///< of the part in the view, for each axis
  char* data;  ///< of the element at index zero; the others are at the part's strides
};
/// Reads a view that is not empty as windows of a few MB, which together are the view. `take` may
/// use a window's memory until it returns. Throws WeightsError.
void read_windows(const FileView& view, const std::function<void(const Window&)>& take);

/// Reads the view as contiguous bytes, its conj and neg bits resolved. Throws WeightsError.
void read_contiguous(const FileView& view, char* out);

/// Whether two views hold the same values, bit for bit.
bool equal_views(const FileView& a, const FileView& b);

/// Throws WeightsError where the view is of bools and has bytes other than 0 and 1: a C++ bool of
/// another value is undefined behaviour.
void check_bools(const FileView& view);

/// The tensor's size in bytes when contiguous. Throws WeightsError if that overflows, as it can for
/// an expanded tensor of a small file.
uint64_t contiguous_bytes(const ManifestTensor& tensor);

/// Passes the value of the tensor `name` on as contiguous little-endian bytes, in order, piece by
/// piece, using some 16 MiB of memory whatever its size. Throws WeightsError.
void stream_tensor(const FileView& view, const std::string& name,
                   const std::function<void(const char* data, std::size_t count)>& take);

}  // namespace posenc::io
