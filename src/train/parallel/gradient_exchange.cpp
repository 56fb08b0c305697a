#include "train/parallel/gradient_exchange.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <utility>

#include "train/parallel/group_text.h"
#include "train/parallel/sparse_sum.h"

namespace posenc::parallel {
namespace {

// The numbers of processes with a dense and with a sparse gradient of each parameter, that of those
// that failed, and the numbers of finish().
int64_t tail_of(const std::vector<at::Tensor>& parameters) {
  return static_cast<int64_t>(2 * parameters.size()) + 1 + GradientExchange::kExtra;
}

// Where the numbers of finish() are in the tail.
at::Tensor of_extra(const at::Tensor& tail, const at::Tensor& extra) {
  return tail.narrow(0, tail.numel() - GradientExchange::kExtra, extra.numel()).view(extra.sizes());
}

}  // namespace

GradientExchange::GradientExchange(std::vector<at::Tensor> parameters,
                                   const std::vector<History>& history, const RankGroup& group,
                                   int64_t bucket_bytes, const char* caller)
    : parameters_(std::move(parameters)),
      group_(group),
      bucket_bytes_(bucket_bytes),
      caller_(caller) {
  for (const History& one : history) {
    placed_.push_back(one.placed);
    used_.push_back(one.used);
  }
  buckets_ = make_buckets(parameters_, placed_, bucket_bytes_, tail_of(parameters_));
  start_step();
}

void GradientExchange::check_extra(const at::Tensor& extra, const char* caller) {
  if (!extra.defined()) return;
  TORCH_CHECK_TYPE(extra.scalar_type() == at::kFloat && extra.is_contiguous(), "[", caller,
                   "] extra must be a contiguous float32 tensor. Got ", extra.scalar_type(), " of ",
                   extra.sizes(), ", strides ", extra.strides());
  TORCH_CHECK_VALUE(extra.numel() <= kExtra, "[", caller, "] extra must have at most ", kExtra,
                    " numbers. Got ", extra.numel());
}

// An error that `work` keeps is thrown after it; any other one ends the exchange.
template <typename Work>
void GradientExchange::guarded(const Work& work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const at::NoGradGuard no_grad;
  if (failed_) {
    throw GroupError(GroupErrorCode::PeerLost, group_.rank(),
                     rank_prefix(caller_, group_.rank(), group_.size()) +
                         "an earlier error ended the exchange of gradients; start all processes "
                         "again");
  }
  try {
    work();
  } catch (...) {
    failed_ = true;
    pending_.clear();
    throw;
  }
  if (error_) std::rethrow_exception(error_);
}

// Keeps the error of this process alone, the first one, for finish().
template <typename Work>
void GradientExchange::keep_error(const Work& work) {
  try {
    work();
  } catch (...) {
    if (!error_) error_ = std::current_exception();
  }
}

void GradientExchange::start_step() {
  ready_.assign(parameters_.size(), false);
  kinds_.assign(parameters_.size(), Kind::None);
  missing_.clear();
  for (const Bucket& bucket : buckets_.all) missing_.push_back(bucket.parameters.size());
  pending_.clear();
}

// Puts a dense gradient into its slot, and zeros there if there is none.
GradientExchange::Kind GradientExchange::collect(std::size_t index) {
  const at::Tensor& parameter = parameters_[index];
  const at::Tensor& slot = buckets_.slots[index];
  at::Tensor& gradient = parameter.mutable_grad();
  if (!gradient.defined() || !parameter.requires_grad()) {
    if (!slot.defined()) return Kind::None;
    // A frozen parameter keeps the gradient that it had.
    if (gradient.defined() && !gradient.is_sparse() && is_alias_of(gradient, slot))
      gradient = gradient.clone();
    slot.zero_();
    return Kind::None;
  }
  TORCH_CHECK_TYPE(gradient.layout() == at::kStrided || gradient.is_sparse(), "[", caller_,
                   "] gradients must be dense or sparse (COO). Got ", gradient.layout());
  const at::Tensor& like = slot.defined() ? slot : parameter;
  TORCH_CHECK_TYPE(gradient.sizes() == like.sizes() &&
                       gradient.scalar_type() == like.scalar_type() &&
                       gradient.device() == like.device(),
                   "[", caller_, "] gradients must be of ", like.sizes(), ", ", like.scalar_type(),
                   " on ", like.device(), ", as their parameter was at construction. Got ",
                   gradient.sizes(), ", ", gradient.scalar_type(), " on ", gradient.device());
  TORCH_CHECK_VALUE(!gradient.requires_grad(), "[", caller_,
                    "] gradients must not require a gradient: create_graph is not supported");
  if (gradient.is_sparse()) {
    if (slot.defined()) slot.zero_();
    return Kind::Sparse;
  }
  if (slot.defined() && !is_alias_of(gradient, slot)) {
    slot.copy_(gradient);
    gradient = alias_of(slot);  // frees the copy while backward() still runs
  }
  return Kind::Dense;
}

void GradientExchange::launch() {
  const at::Tensor& flat = buckets_.all[pending_.size()].flat;
  pending_.push_back(start_all_reduce(group_, flat, caller_));
}

// The exchange of a gradient that is ready may be under way, so nothing may be added to it.
void GradientExchange::check_not_ready(std::size_t index) const {
  TORCH_CHECK_VALUE(!ready_[index], "[", caller_,
                    "] backward() must be called once before finish(); pause() all "
                    "micro-batches but the last. Got a second gradient for a parameter of ",
                    parameters_[index].sizes());
}

void GradientExchange::accumulated(std::size_t index) {
  guarded([&] { keep_error([&] { check_not_ready(index); }); });
}

void GradientExchange::take(std::size_t index) {
  keep_error([&] {
    check_not_ready(index);
    kinds_[index] = collect(index);
    ready_[index] = true;
  });
}

void GradientExchange::ready(std::size_t index) {
  guarded([&] {
    take(index);
    if (error_) return;
    const std::size_t bucket = buckets_.bucket_of[index];
    if (bucket == Buckets::kNone) return;
    --missing_[bucket];
    // The last one waits for finish(), which writes its tail.
    while (pending_.size() + 1 < buckets_.all.size() && missing_[pending_.size()] == 0) launch();
  });
}

void GradientExchange::launch_last(const at::Tensor& extra) {
  const std::size_t count = parameters_.size();
  const at::Tensor numbers = at::zeros({tail_of(parameters_)}, at::TensorOptions(at::kFloat));
  float* const counts = numbers.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < count; ++i) {
    if (kinds_[i] == Kind::Dense) counts[i] = 1.0f;
    if (kinds_[i] == Kind::Sparse) counts[count + i] = 1.0f;
  }
  if (error_) counts[2 * count] = 1.0f;
  buckets_.tail.copy_(numbers);
  if (extra.defined() && !error_) of_extra(buckets_.tail, extra).copy_(extra);
  launch();
}

bool GradientExchange::has_failed() const {
  return counts_.const_data_ptr<float>()[2 * parameters_.size()] > 0.0f;
}

bool GradientExchange::exists(std::size_t index, Kind kind) const {
  const std::size_t first = kind == Kind::Dense ? 0 : parameters_.size();
  return counts_.const_data_ptr<float>()[first + index] > 0.0f;
}

at::Tensor GradientExchange::dense_sum(std::size_t index) {
  const at::Tensor &parameter = parameters_[index], &slot = buckets_.slots[index];
  const at::Tensor& own = parameter.grad();
  if (slot.defined()) return own.defined() && is_alias_of(own, slot) ? own : alias_of(slot);
  const at::Tensor sum = at::zeros(parameter.sizes(), parameter.options().requires_grad(false));
  if (kinds_[index] == Kind::Dense) sum.copy_(own);
  all_reduce(group_, sum, caller_);
  return sum;
}

void GradientExchange::take_sums() {
  std::vector<at::Tensor> sparse;  // parameters
  std::vector<SparseRows> rows;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].mutable_grad();
    if (exists(i, Kind::Sparse)) {
      sparse.push_back(parameters_[i]);
      rows.push_back(
          sparse_rows(kinds_[i] == Kind::Sparse ? gradient : at::Tensor(), parameters_[i]));
      if (kinds_[i] != Kind::Dense) gradient.reset();
    }
    if (exists(i, Kind::Dense)) gradient = dense_sum(i);
  }
  const auto sums = sum_sparse(group_, rows, sparse, caller_);
  for (std::size_t k = 0; k < sparse.size(); ++k) {
    at::Tensor& gradient = sparse[k].mutable_grad();
    if (gradient.defined())
      gradient.add_(sums[k]);
    else
      gradient = sums[k];
  }
}

void GradientExchange::update_slots() {
  std::vector<bool> placed = placed_;
  bool any = false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const bool dense = exists(i, Kind::Dense), sparse = exists(i, Kind::Sparse);
    any |= dense || sparse;
    used_[i] = used_[i] || dense || sparse;
    placed[i] = dense || (placed_[i] && used_[i] && !sparse);
  }
  if (!any || placed == placed_) return;
  placed_ = std::move(placed);
  buckets_ = make_buckets(parameters_, placed_, bucket_bytes_, tail_of(parameters_));
}

void GradientExchange::finish(const at::Tensor& extra) {
  bool failed = false;
  std::exception_ptr own;
  guarded([&] {
    keep_error([&] { check_extra(extra, caller_); });
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!ready_[i]) take(i);
    }
    while (pending_.size() + 1 < buckets_.all.size()) launch();
    launch_last(extra);
    for (Pending& pending : pending_) pending.wait();
    counts_ = buckets_.tail.to(at::kCPU);
    failed = has_failed();
    own = std::exchange(error_, nullptr);
    if (!failed) {
      take_sums();
      if (extra.defined()) extra.copy_(of_extra(buckets_.tail, extra));
      update_slots();
    }
    start_step();
  });
  if (!failed) return;
  const auto rethrow = [&] {
    if (own) std::rethrow_exception(own);
  };
  all_or_none(group_, rethrow, caller_);
}

}  // namespace posenc::parallel
