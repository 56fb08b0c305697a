#include "functional/vocab_parallel/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "functional/lookup.h"
#include "functional/vocab_parallel/exchange.h"
#include "posenc/functional/token_embedding.h"

namespace posenc::functional {
namespace {

constexpr const char* kCaller = "vocab_parallel_embedding";

void check_embedding(const at::Tensor& ids, const at::Tensor& weight, const VocabShard& shard,
                     const RankGroup& group) {
  check_shard(kCaller, shard, group);
  TORCH_CHECK_VALUE(weight.dim() == 2 && weight.size(0) == shard.rows(), "[", kCaller,
                    "] weight must be the shard's rows, (", shard.rows(), ", D). Got ",
                    weight.sizes());
  TORCH_CHECK_TYPE(at::isIntegralType(ids.scalar_type(), /*includeBool=*/false),
                   "[TokenEmbedding] ids must be integers. Got ", ids.scalar_type());
  check_range("TokenEmbedding", "id", ids, shard.vocab);
}

// The row of the shard that gets no gradient, if it is one of this process's.
std::optional<int64_t> own_padding(const VocabShard& shard, const std::optional<int64_t>& index) {
  const int64_t row = padding_row("TokenEmbedding", "padding_idx", index, shard.vocab);
  if (row < shard.first || row >= shard.last) return std::nullopt;
  return row - shard.first;
}

}  // namespace

void check_range(const char* module, const char* name, const at::Tensor& index, int64_t vocab) {
  if (index.numel() == 0) return;
  const auto [least, most] = at::aminmax(index.detach());
  if (least.item<int64_t>() < 0 || most.item<int64_t>() >= vocab)
    check_indices({module, name, "vocab_size"}, index, vocab);
}

at::Tensor vocab_parallel_embedding(const at::Tensor& ids, const at::Tensor& weight,
                                    const VocabShard& shard, const RankGroup& group,
                                    const VocabParallelEmbeddingFuncOptions& options,
                                    const std::function<void()>& check) {
  if (group.size() == 1) {
    check_shard(kCaller, shard, group);
    check();
    return token_embedding(ids, weight, options.scale(), options.padding_idx(), options.sparse());
  }
  std::optional<int64_t> padding;
  const RowExchange exchange = start_exchange(group, options.tokens(), kCaller, [&] {
    check_embedding(ids, weight, shard, group);
    padding = own_padding(shard, options.padding_idx());
    check();
    return ids.numel();
  });
  const at::Tensor all = gather_ids(exchange, ids, shard.vocab);                             // (N)
  const at::Tensor own = at::nonzero((all >= shard.first) & (all < shard.last)).squeeze(1);  // (n)
  const at::Tensor rows = token_embedding(at::index_select(all, 0, own) - shard.first, weight,
                                          options.scale(), padding, options.sparse());  // (n, D)
  const at::Tensor parts =
      at::zeros({all.size(0), weight.size(1)}, rows.options()).index_copy_(0, own, rows);
  at::DimVector sizes(ids.sizes());
  sizes.push_back(weight.size(1));
  return sum_rows_of_ranks(exchange, parts).view(sizes);
}

at::Tensor vocab_parallel_embedding(const at::Tensor& ids, const at::Tensor& weight,
                                    const VocabShard& shard, const RankGroup& group,
                                    const VocabParallelEmbeddingFuncOptions& options) {
  return vocab_parallel_embedding(ids, weight, shard, group, options, [] {});
}

}  // namespace posenc::functional
