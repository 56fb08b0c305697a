#pragma once

#include <string>

#include "posenc/weights/manifest.h"
#include "weights/common/file.h"

namespace posenc::testing {

/// The contiguous bytes of a tensor, with conj and neg resolved.
std::string values(const io::InputFile& file, const Manifest& manifest,
                   const ManifestTensor& tensor);

/// The text that make_files.py expects: `name dtype sizes bytes` for each tensor and `opaque name`
/// for each opaque object, sorted.
std::string manifest_text(const io::InputFile& file, const Manifest& manifest);

}  // namespace posenc::testing
