#include "posenc/train/sparse_adam.h"

#include "train/adam_rows.h"
#include "train/optimizer_base.h"

namespace posenc {

void train::OptimizerTraits<SparseAdamOptions>::check(const SparseAdamOptions& options) {
  check_not_negative(kOptimizer, "lr", options.lr());  // schedules end at 0
  TORCH_CHECK_VALUE(options.eps() > 0.0, "[", kOptimizer, "] eps must be positive. Got ",
                    options.eps());
  check_betas(kOptimizer, options.betas());
}

const char* train::OptimizerTraits<SparseAdamOptions>::refusal(const SparseAdamOptions&,
                                                               const at::Tensor& gradient) {
  return refusal_of_rows(gradient);
}

void SparseAdam::step_group(const SparseAdamOptions& options, std::vector<Entry>& entries) {
  for (const Entry& entry : entries)
    train::step_rows(options, entry.parameter, entry.gradient, *entry.state);
}

template class OptimizerOptions<SparseAdamOptions>;
template class OptimizerBase<SparseAdamOptions, torch::optim::AdamParamState>;

}  // namespace posenc
