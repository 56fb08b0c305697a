#include "posenc/io/load.h"

#include "io/fit.h"
#include "io/format.h"
#include "io/read/context.h"
#include "posenc/io/safetensors.h"
#include "posenc/io/torchscript.h"

namespace posenc {

LoadReport load_weights(torch::nn::Module& module, const std::string& path,
                        const LoadOptions& options) {
  const auto format =
      io::in_context("load_weights", path, [&] { return io::detect_format(io::InputFile(path)); });
  const std::string subject = "[load_weights] " + path;
  if (format == io::Format::Safetensors) {
    return io::load_fitting(module, load_safetensors(path).tensors, options, subject);
  }
  const auto file = load_torchscript(path);
  return io::load_fitting(module, file.tensors, options, subject, file.buffers);
}

}  // namespace posenc
