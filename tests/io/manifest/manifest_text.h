#pragma once

#include <string>

#include "io/base/file.h"
#include "posenc/io/manifest.h"

namespace posenc::testing {

/// The contiguous bytes of a tensor, conj and neg resolved.
std::string values(const io::InputFile& file, const Manifest& manifest,
                   const ManifestTensor& tensor);

/// What make_files.py expects: `name dtype sizes bytes` for each tensor, `opaque name` for each
/// opaque object, sorted.
std::string manifest_text(const io::InputFile& file, const Manifest& manifest);

}  // namespace posenc::testing
