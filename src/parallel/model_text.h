#pragma once

#include <string>

namespace torch::nn {
class Module;
}

namespace posenc::parallel {

/// What processes that train `module` together must have in common, a line for the version of
/// posenc and for each parameter and buffer: name, dtype, shape, strides,
/// requires_grad and kind of device. Values are not part of it, nor how many rows a computed table
/// has.
std::string model_text(const torch::nn::Module& module);
/// The lines of the buffers.
std::string buffers_text(const torch::nn::Module& module);

}  // namespace posenc::parallel
