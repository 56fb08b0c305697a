#include "inference/freeze/checks.h"

namespace posenc::inference {

void check_sequence(const char* name, const at::Tensor& x, int64_t width) {
  TORCH_CHECK_VALUE(x.defined(), "[", name, "] a sequence must be (B, L, ", width,
                    "). Got an undefined tensor");
  TORCH_CHECK_TYPE(x.scalar_type() == at::kFloat, "[", name, "] a frozen model takes float32. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == width && x.is_cpu(), "[", name,
                    "] a sequence must be (B, L, ", width, ") on the CPU. Got ", x.sizes(), " on ",
                    x.device());
}

}  // namespace posenc::inference
