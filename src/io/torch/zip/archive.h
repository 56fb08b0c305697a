#pragma once

#include <string>
#include <string_view>

#include "io/torch/zip/index.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// A zip archive as PyTorch writes it: its records lie below one root folder of any name.
class Archive {
 public:
  static constexpr uint64_t kLargestPickle = UINT32_MAX;

  /// Throws WeightsError for zip archives that are not PyTorch's, or of a kind that cannot be read
  /// (of a PyTorch that is too old, big-endian).
  explicit Archive(const InputFile& file);

  const InputFile& file() const noexcept { return index_.file(); }
  const ZipIndex& index() const noexcept { return index_; }

  /// TorchSave, TorchScript or Pt2.
  WeightsFormat format() const noexcept { return format_; }

  /// The record of that name below the root, or null.
  const ZipRecord* find(const std::string& name) const;

  /// The bytes of a record that has to be there, and may have at most this many.
  std::string read(const std::string& name, uint64_t most = kLargestPickle) const;

  /// The name of a record below the root; empty where it lies elsewhere.
  std::string_view below_root(const ZipRecord& record) const;

 private:
  WeightsFormat detect() const;
  void check_byte_order() const;

  ZipIndex index_;
  std::string root_;  // with its slash
  WeightsFormat format_;
};

}  // namespace posenc::io
