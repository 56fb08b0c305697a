#include "posenc/positions/functional/grid_positional_encoding.h"

#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

namespace posenc::functional {

at::Tensor grid_positional_encoding(const at::Tensor& x, const at::Tensor& table) {
  const bool batched = table.dim() == 3 && table.size(0) == 1;
  TORCH_CHECK_VALUE(batched || table.dim() == 2,
                    "[GridPositionalEncoding] table must be (R, D) or (1, R, D). Got ",
                    table.sizes());
  TORCH_CHECK_VALUE(x.dim() == 2 || x.dim() == 3,
                    "[GridPositionalEncoding] x must be (B, R, D) or (R, D). Got ", x.sizes());
  TORCH_CHECK_TYPE(x.is_floating_point(), "[GridPositionalEncoding] x must be real-valued. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.size(-1) == table.size(-1), "[GridPositionalEncoding] x must have d_model ",
                    table.size(-1), " in its last axis. Got ", x.sizes());
  TORCH_CHECK_VALUE(x.size(-2) == table.size(-2), "[GridPositionalEncoding] x must have ",
                    table.size(-2), " rows, one a row of the table. Got ", x.sizes());
  return x + (batched ? table.squeeze(0) : table);
}

}  // namespace posenc::functional
