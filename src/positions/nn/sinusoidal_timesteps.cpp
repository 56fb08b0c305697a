#include "posenc/positions/nn/sinusoidal_timesteps.h"

#include <torch/nn/modules/activation.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/positions/functional/sinusoidal_timesteps.h"
#include "posenc/positions/sinusoid/preset.h"
#include "positions/nn/weights.h"

namespace posenc {

SinusoidalTimestepsImpl::SinusoidalTimestepsImpl(SinusoidalTimestepsOptions options_)
    : options(std::move(options_)) {
  SinusoidalTimestepsImpl::reset();
}

void SinusoidalTimestepsImpl::reset() {
  const int64_t dim = options.d_model();
  check_positive("SinusoidalTimesteps", "d_model", dim);
  check_positive("SinusoidalTimesteps", "hidden", options.hidden());
  check_positive("SinusoidalTimesteps", "channels", options.channels());
  TORCH_CHECK_VALUE(options.sequential().find('.') == std::string::npos,
                    "[SinusoidalTimesteps] sequential must be a name without dots. Got `",
                    options.sequential(), "`");
  if (!options.sinusoid()) {
    options.sinusoid(
        preset("diffusers_timesteps", dim, {{"flip_sin_to_cos", 1}, {"downscale_freq_shift", 0}}));
  }
  options.sinusoid()->validate();
  TORCH_CHECK_VALUE(options.sinusoid()->channels() == dim,
                    "[SinusoidalTimesteps] the sinusoid must have d_model ", dim, " channels. Got ",
                    options.sinusoid()->channels());
  const auto in = make_linear({dim, options.hidden()});
  const auto out = make_linear({options.hidden(), options.channels()});
  if (options.sequential().empty()) {
    linear_1 = register_module("linear_1", in);
    linear_2 = register_module("linear_2", out);
  } else {
    sequential =
        register_module(options.sequential(), torch::nn::Sequential(in, torch::nn::SiLU(), out));
  }
}

// Always looked up in the Sequential, because clone() replaces its layers.
torch::nn::LinearImpl& SinusoidalTimestepsImpl::first() {
  return sequential ? sequential->at<torch::nn::LinearImpl>(0) : *linear_1;
}

torch::nn::LinearImpl& SinusoidalTimestepsImpl::second() {
  return sequential ? sequential->at<torch::nn::LinearImpl>(2) : *linear_2;
}

void SinusoidalTimestepsImpl::reset_parameters() {
  first().reset_parameters();
  second().reset_parameters();
}

void SinusoidalTimestepsImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "SinusoidalTimesteps", options, SinusoidalTimestepsOptions(-1, -1));
}

torch::Tensor SinusoidalTimestepsImpl::forward(const torch::Tensor& t) {
  return functional::sinusoidal_timesteps(
      t, *options.sinusoid(), {first().weight, first().bias, second().weight, second().bias});
}

}  // namespace posenc
