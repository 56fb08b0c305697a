#include "core/check.h"

#include <c10/util/Exception.h>

namespace posenc {

void check_dropout(const char* module, double p) {
  TORCH_CHECK_VALUE(p >= 0.0 && p < 1.0, "[", module, "] dropout must lie in [0, 1). Got ", p);
}

void check_positive(const char* module, const char* what, int64_t value) {
  TORCH_CHECK_VALUE(value > 0, "[", module, "] ", what, " must be positive. Got ", value);
}

}  // namespace posenc
