#pragma once

#include <string>
#include <string_view>

#include "posenc/weights/manifest.h"
#include "weights/torch/zip/index.h"

namespace posenc::io {

/// A zip archive as PyTorch writes it: its records are below one root folder of any name.
class Archive {
 public:
  static constexpr uint64_t kLargestPickle = UINT32_MAX;

  /// Throws WeightsError for a zip archive that is not PyTorch's, or is of a kind that cannot be
  /// read (big-endian, or from a PyTorch that is too old).
  explicit Archive(const InputFile& file);

  const InputFile& file() const noexcept { return index_.file(); }
  const ZipIndex& index() const noexcept { return index_; }

  /// TorchSave, TorchScript or Pt2.
  WeightsFormat format() const noexcept { return format_; }

  /// The record with this name below the root, or null.
  const ZipRecord* find(const std::string& name) const;

  /// The bytes of a record, which has to exist and must not be larger than `most`.
  std::string read(const std::string& name, uint64_t most = kLargestPickle) const;

  /// The name of a record below the root; empty if it is elsewhere.
  std::string_view below_root(const ZipRecord& record) const;

 private:
  WeightsFormat detect() const;
  void check_byte_order() const;

  ZipIndex index_;
  std::string root_;  // including the slash
  WeightsFormat format_;
};

}  // namespace posenc::io
