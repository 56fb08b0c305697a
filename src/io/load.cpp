#include "posenc/io/load.h"

#include "io/load/file_source.h"
#include "io/load/fit.h"
#include "io/load/load_all.h"
#include "io/load/memory_source.h"
#include "io/read/context.h"

namespace posenc {
namespace {

LoadReport load(torch::nn::Module& module, const io::TensorSource& source,
                const LoadOptions& options) {
  io::Fit fit(module, source, options);
  if (options.staged()) fit.stage();
  fit.write();
  return fit.report();
}

}  // namespace

LoadReport load_weights(torch::nn::Module& module, const std::string& path,
                        const LoadOptions& options) {
  return io::in_context("load_weights", path,
                        [&] { return load(module, io::FileSource(path), options); });
}

LoadReport load_state_dict(torch::nn::Module& module, const StateDict& tensors,
                           const LoadOptions& options) {
  return io::in_context("load_state_dict", "",
                        [&] { return load(module, io::MemorySource(tensors, module), options); });
}

StateDict load_tensors(const std::string& path) {
  return io::in_context("load_tensors", path,
                        [&] { return io::all_tensors(io::OpenWeights(path)); });
}

}  // namespace posenc
