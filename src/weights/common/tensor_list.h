#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "posenc/weights/error.h"
#include "posenc/weights/manifest.h"
#include "weights/common/budget.h"
#include "weights/common/keyed_hash.h"

namespace posenc::io {

/// The most dimensions of a tensor: LibTorch's iterators support no more.
constexpr std::size_t kMostDimensions = 64;

/// Fills in a manifest's tensors and checks each against its storage, so that later readers of the
/// values stay inside of it. Throws WeightsError with the tensor's name.
class TensorList {
 public:
  TensorList(Manifest& manifest, Budget& budget, uint64_t file_bytes)
      : manifest_(manifest), budget_(budget), values_left_(kBase + kFactor * file_bytes) {}

  /// Returns the index of a new storage. Its size is final; its place may be filled in later.
  std::size_t add_storage(const ManifestStorage& storage);

  /// The storage must have been added before. Returns false, and leaves the tensor out, if its name
  /// is taken.
  [[nodiscard]] bool add(ManifestTensor tensor);

 private:
  // A tensor expanded over a small storage may have any number of elements. More than this in total
  // would keep a reader of the values busy for minutes, at the cost of a few bytes of file.
  static constexpr uint64_t kBase = uint64_t{256} << 20;
  static constexpr uint64_t kFactor = 16;

  void check(const ManifestTensor& tensor);

  Manifest& manifest_;
  Budget& budget_;
  uint64_t values_left_;
  NameSet names_;
};

/// The text in a manifest for a tensor that cannot be read because of `error`.
std::string unreadable(const WeightsError& error);

/// What to do in Python about an object that may hold the weights; empty for other kinds.
std::string remedy_for(EntryKind kind);

/// For callers that need every tensor: throws WeightsError naming the first that cannot be read.
void refuse_unreadable(const Manifest& manifest);

}  // namespace posenc::io
