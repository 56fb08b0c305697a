#include "posenc/functional/token_embedding.h"

#include "functional/embed/composed.h"
#include "functional/embed/fused.h"

namespace posenc::functional {

at::Tensor token_embedding(const at::Tensor& ids, const at::Tensor& weight, const Scale& scale,
                           std::optional<int64_t> padding_idx, bool sparse) {
  const auto options = EmbedFuncOptions().scale(scale).padding_idx(padding_idx).sparse(sparse);
  EmbedPlan plan;
  if (is_fusable(ids, weight, {}, options, plan))
    return embed_fused(plan, ids, weight, {}, options);
  return embed_composed(ids, weight, {}, options);
}

}  // namespace posenc::functional
