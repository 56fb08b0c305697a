#include "posenc/functional/embed.h"

#include <ATen/ops/dropout.h>

#include "posenc/core/check.h"

namespace posenc::functional {

at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                 const EmbedFuncOptions& options) {
  check_dropout("embed", options.dropout());
  const at::Tensor tokens = token_embedding(ids, weight, options.scale(), options.padding_idx());
  const at::Tensor sum = positional_encoding(tokens, table, options.position());
  return at::dropout(sum, options.dropout(), options.training());
}

}  // namespace posenc::functional
