#include "posenc/train/fused_sgd.h"

#include <ATen/Functions.h>

#include "train/dense.h"
#include "train/optimizer_base.h"

namespace posenc {
namespace {

// PyTorch's update with its operations. The momentum buffer is dense; Python's is sparse, but
// accumulates every row that was ever touched, and those rows move in each step there too.
void step_sparse(const FusedSGDOptions& options, const at::Tensor& p, const at::Tensor& gradient,
                 at::Tensor& buffer) {
  const double rate = options.maximize() ? options.lr() : -options.lr();
  if (options.momentum() == 0.0) {
    p.add_(gradient, rate);
    return;
  }
  if (buffer.defined()) {
    buffer.mul_(options.momentum()).add_(gradient, 1.0 - options.dampening());
  } else {
    buffer = at::zeros_like(p).add_(gradient);
  }
  if (options.nesterov()) {
    p.add_(gradient, rate);
    p.add_(buffer, rate * options.momentum());
  } else {
    p.add_(buffer, rate);
  }
}

}  // namespace

void train::OptimizerTraits<FusedSGDOptions>::check(const FusedSGDOptions& options) {
  check_not_negative(kOptimizer, "lr", options.lr());
  check_not_negative(kOptimizer, "momentum", options.momentum());
  check_not_negative(kOptimizer, "weight_decay", options.weight_decay());
  TORCH_CHECK_VALUE(!options.nesterov() || (options.momentum() > 0.0 && options.dampening() == 0.0),
                    "[", kOptimizer, "] nesterov needs a momentum and no dampening. Got momentum ",
                    options.momentum(), ", dampening ", options.dampening());
}

const char* train::OptimizerTraits<FusedSGDOptions>::refusal(const FusedSGDOptions& options,
                                                             const at::Tensor& gradient) {
  if (gradient.layout() == at::kStrided) return nullptr;
  if (!gradient.is_sparse()) return "the gradient must be dense or sparse (COO)";
  if (options.weight_decay() == 0.0) return nullptr;
  return "weight_decay must be 0 for a sparse gradient: it would move every row. Give the "
         "embedding a group with weight_decay(0)";
}

void FusedSGD::step_group(const FusedSGDOptions& options, std::vector<Entry>& entries) {
  // In the first step the buffer is set to the gradient, without dampening.
  std::vector<train::FusedEntry> first, later;
  for (const Entry& entry : entries) {
    at::Tensor& buffer = entry.state->momentum_buffer();
    if (entry.gradient.is_sparse()) {
      step_sparse(options, entry.parameter, entry.gradient, buffer);
    } else if (options.momentum() == 0.0) {
      later.push_back({entry.parameter, entry.gradient, {}});
    } else {
      (buffer.defined() ? later : first).push_back({entry.parameter, entry.gradient, {&buffer}});
    }
  }
  const auto run = [&](const std::vector<train::FusedEntry>& dense, bool is_first) {
    train::run_fused(dense, [&](train::FusedLists& lists) {
      const auto buffers =
          lists.states.empty() ? at::TensorList() : at::TensorList(lists.states[0]);
      at::_fused_sgd_(lists.parameters, lists.gradients, buffers, options.weight_decay(),
                      options.momentum(), options.lr(), options.dampening(), options.nesterov(),
                      options.maximize(), is_first);
    });
  };
  run(first, true);
  run(later, false);
}

template class OptimizerOptions<FusedSGDOptions>;
template class OptimizerBase<FusedSGDOptions, torch::optim::SGDParamState>;

}  // namespace posenc
