#pragma once

#include "io/torch/zip/archive.h"
#include "posenc/io/manifest.h"

// The readers of what PyTorch writes. None of them runs, compiles or calls anything that a file
// names. The manifest's storages lie in `file`, whose path is the manifest's one file.
namespace posenc::io {

/// Whether the file begins with the pickled magic number of torch.save before PyTorch 1.6.
bool looks_like_torch_legacy(const InputFile& file);
Manifest read_torch_legacy(const InputFile& file);

/// Any zip archive of PyTorch, by its kind; one of the three below.
Manifest read_archive(const InputFile& file);
Manifest read_torch_save(const Archive& archive);
Manifest read_torchscript(const Archive& archive);
Manifest read_pt2(const Archive& archive);

}  // namespace posenc::io
