#pragma once

#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>

namespace posenc::testing {

/// RAII version of torch::set_default_dtype().
class DefaultDtype {
 public:
  explicit DefaultDtype(c10::ScalarType dtype) : before_(c10::get_default_dtype()) {
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(dtype));
  }
  ~DefaultDtype() { c10::set_default_dtype(before_); }
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;

 private:
  caffe2::TypeMeta before_;
};

}  // namespace posenc::testing
