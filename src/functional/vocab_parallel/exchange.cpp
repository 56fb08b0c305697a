#include "functional/vocab_parallel/exchange.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <exception>
#include <limits>
#include <utility>

#include "parallel/collectives.h"
#include "parallel/group_text.h"
#include "torch_internals/backward_node.h"
#include "torch_internals/shortcut.h"

namespace posenc::functional {
namespace {

using ShareOrSum = at::Tensor (*)(const RowExchange& exchange, const at::Tensor& rows);

// The two exchanges are each other's gradient, so that both can be differentiated any number of
// times.
struct RowExchangeBackward : torch_internals::BackwardNode {
  RowExchangeBackward(const char* name, RowExchange how, ShareOrSum gradient)
      : BackwardNode(name), exchange(std::move(how)), gradient_of(gradient) {}
  torch_internals::Gradients backward(const at::Tensor& grad) override {
    return {gradient_of(exchange, grad)};
  }
  void release() override {}  // nothing was saved

  RowExchange exchange;
  ShareOrSum gradient_of;
};

at::Tensor recorded(const at::Tensor& out, const at::Tensor& rows, const RowExchange& exchange,
                    const char* name, ShareOrSum gradient) {
  if (torch_internals::is_recorded(rows)) {
    torch_internals::set_history(
        out, torch_internals::make_node<RowExchangeBackward>(name, exchange, gradient), rows);
  }
  return out;
}

[[noreturn]] void throw_invalid(const RowExchange& exchange, size_t rank) {
  const RankGroup& group = exchange.group;
  throw GroupError(
      GroupErrorCode::PeerFailed, group.rank(),
      c10::str(parallel::place_text(exchange.caller, group.rank(), group.size()), "rank ", rank,
               " was given invalid arguments; its own error names them"));
}

}  // namespace

RowExchange start_exchange(const RankGroup& group, RankTokens tokens, const char* caller,
                           const std::function<RowCounts()>& check) {
  RowExchange exchange{group, caller, {}};
  if (tokens == RankTokens::Same || group.size() == 1) {
    check();
    return exchange;
  }
  constexpr int64_t kFailed = -1;
  int64_t own = kFailed, all = RowCounts::kNone;
  std::exception_ptr error;
  try {
    // Declared here and not outside: GCC 12 at -O2 clears an outer variable if check() throws.
    const RowCounts counts = check();
    own = counts.own, all = counts.all;
  } catch (...) {
    error = std::current_exception();
  }
  const auto of_ranks = parallel::all_gather_numbers(group, {own, all}, caller);
  if (error) std::rethrow_exception(error);
  int64_t total = 0;
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank][0] == kFailed) throw_invalid(exchange, rank);
    exchange.lengths.push_back(of_ranks[rank][0]);
    total += of_ranks[rank][0];
  }
  TORCH_CHECK_VALUE(all == RowCounts::kNone || all == total, "[", caller,
                    "] logits must be those of all processes' tokens, (", total, ", ...). Got ",
                    all, " rows");
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const int64_t given = of_ranks[rank][1];
    if (given != RowCounts::kNone && given != total) throw_invalid(exchange, rank);
  }
  return exchange;
}

at::Tensor gather_ids(const RowExchange& exchange, const at::Tensor& ids, int64_t vocab) {
  const at::Tensor flat = ids.detach().reshape({-1});
  if (exchange.lengths.empty()) return flat.to(at::kLong);
  const auto type = vocab <= std::numeric_limits<int32_t>::max() ? at::kInt : at::kLong;
  return parallel::all_gather_rows(exchange.group, flat.to(type).contiguous(), exchange.lengths,
                                   exchange.caller)
      .to(at::kLong);
}

at::Tensor sum_rows_of_ranks(const RowExchange& exchange, const at::Tensor& parts) {
  at::Tensor out;
  {
    const at::NoGradGuard no_grad;
    if (!exchange.lengths.empty()) {
      out = parallel::reduce_scatter_rows(exchange.group, parts.contiguous(), exchange.lengths,
                                          exchange.caller);
    } else {
      out = parts.detach().clone(at::MemoryFormat::Contiguous);
      parallel::all_reduce(exchange.group, out, exchange.caller);
    }
  }
  return recorded(out, parts, exchange, "SumRowsOfRanksBackward", share_rows);
}

at::Tensor share_rows(const RowExchange& exchange, const at::Tensor& rows) {
  at::Tensor out;
  {
    const at::NoGradGuard no_grad;
    out = exchange.lengths.empty() ? rows.detach()
                                   : parallel::all_gather_rows(exchange.group, rows.contiguous(),
                                                               exchange.lengths, exchange.caller);
  }
  return recorded(out, rows, exchange, "ShareRowsBackward", sum_rows_of_ranks);
}

void check_shard(const char* caller, const VocabShard& shard, const RankGroup& group) {
  const VocabShard own = VocabShard::of(shard.vocab, group.rank(), group.size());
  TORCH_CHECK_VALUE(shard.first == own.first && shard.last == own.last, "[", caller,
                    "] shard must be VocabShard::of(", shard.vocab, ", ", group.rank(), ", ",
                    group.size(), "), the rows [", own.first, ", ", own.last, "). Got [",
                    shard.first, ", ", shard.last, ")");
}

}  // namespace posenc::functional
