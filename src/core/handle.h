#pragma once

#include <c10/util/Exception.h>

#include <memory>

namespace posenc {

/// What a handle of the class `name` refers to. Throws c10::ValueError for one that was moved from.
template <typename T>
const std::shared_ptr<T>& referred(const char* name, const std::shared_ptr<T>& object) {
  TORCH_CHECK_VALUE(object != nullptr, "[", name,
                    "] must refer to a model. Got an object that was moved from");
  return object;
}

}  // namespace posenc
