#pragma once

#include "posenc/weights/manifest.h"
#include "weights/torch/zip/archive.h"

// The readers of what PyTorch writes. None of them runs, compiles or calls anything that a file
// names. The manifest's storages are in `file`, and its path is the manifest's only one.
namespace posenc::io {

/// Whether the file starts with the pickled magic number of torch.save before PyTorch 1.6.
bool looks_like_torch_legacy(const InputFile& file);
Manifest read_torch_legacy(const InputFile& file);

/// Reads any zip archive of PyTorch, by one of the three functions below.
Manifest read_archive(const InputFile& file);
Manifest read_torch_save(const Archive& archive);
Manifest read_torchscript(const Archive& archive);
Manifest read_pt2(const Archive& archive);

}  // namespace posenc::io
