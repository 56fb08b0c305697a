#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "posenc/weights/manifest.h"

namespace posenc::io {

/// The meaning of a pickle's global. All others are Unknown, and the objects that they make stay
/// opaque.
enum class Global : uint8_t {
  Unknown,
  Dict,      ///< OrderedDict, and others that are filled like it
  Sequence,  ///< list, tuple, torch.Size
  Set,
  RebuildTensor,  ///< with storage, offset, sizes, strides; V2 and V3 with more
  RebuildTensorV2,
  RebuildTensorV3,
  RebuildParameter,
  RebuildFromType,  ///< (function, class, arguments, attributes)
  PlainTensor,      ///< torch.Tensor
  Parameter,
  Buffer,
  Sparse,
  Quantised,
  Nested,
  Meta,         ///< without data
  OtherTensor,  ///< of a class or device of its own
  Storage,
  DtypeName,
  OtherDtype,  ///< that of no dense tensor here: quantised, or of other than whole numbers of bytes
  Device,
  Encode,      ///< _codecs.encode(text, "latin1"): bytes in protocol 2
  Transparent  ///< torch.jit._pickle.*: equal to its first argument
};

struct GlobalMeaning {
  Global global = Global::Unknown;
  std::optional<ManifestDtype> dtype;  ///< for DtypeName and the classes of storages
};

/// The meaning of `module.name`.
GlobalMeaning meaning_of(std::string_view qualified_name);

}  // namespace posenc::io
