#include "posenc/positions/functional/token_embedding.h"

#include "positions/functional/embed/fused.h"

namespace posenc::functional {

at::Tensor token_embedding(const at::Tensor& ids, const at::Tensor& weight, const Scale& scale,
                           std::optional<int64_t> padding_idx, bool sparse) {
  const auto options = EmbedFuncOptions().scale(scale).padding_idx(padding_idx).sparse(sparse);
  return embed_or_look_up(ids, weight, {}, options);
}

}  // namespace posenc::functional
