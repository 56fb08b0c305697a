#pragma once

#include <string>

#include "posenc/weights/save.h"
#include "weights/convert.h"

namespace posenc::io {

/// The format of a file for which `format` is given: never SaveFormat::ByExtension.
inline SaveFormat save_format(const std::string& path, SaveFormat format) {
  if (format != SaveFormat::ByExtension) return format;
  return is_torch_save(path) ? SaveFormat::TorchSave : SaveFormat::Safetensors;
}

}  // namespace posenc::io
