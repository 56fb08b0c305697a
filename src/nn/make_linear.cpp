#include "nn/make_linear.h"

#include "posenc/core/skip_init.h"

namespace posenc {

torch::nn::Linear make_linear(const torch::nn::LinearOptions& options) {
  if (!SkipInit::is_active()) return torch::nn::Linear(options);
  // Its constructor always draws weights, so construct an empty layer and allocate afterwards.
  torch::nn::Linear linear(torch::nn::LinearOptions(1, 0).bias(options.bias()));
  linear->options = options;
  linear->weight.set_data(torch::empty({options.out_features(), options.in_features()}));
  if (options.bias()) linear->bias.set_data(torch::empty({options.out_features()}));
  return linear;
}

}  // namespace posenc
