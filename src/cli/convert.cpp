// posenc convert: converts any readable weights file to safetensors, or to torch.save's format.

#include "weights/convert.h"

#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "posenc/weights/load.h"
#include "posenc/weights/manifest.h"
#include "posenc/weights/save.h"
#include "weights/common/file.h"

namespace posenc::cli {
namespace {

struct ConvertOptions {
  std::string input, output;
};

// torch.save's format holds ties and views, so that all tensors are in memory at once.
uint64_t write_as_torch_save(const ConvertOptions& options) {
  const StateDict tensors = load_tensors(options.input);
  save_tensors(options.output, tensors);
  uint64_t bytes = 0;
  for (const auto& item : tensors) bytes += item.value().nbytes();
  return bytes;
}

void convert_file(const ConvertOptions& options) {
  check_output(options.output, {options.input});
  const auto weights = io::in_context("read_manifest", options.input,
                                      [&] { return io::OpenWeights(options.input); });
  const Manifest& manifest = weights.manifest;
  io::in_context("convert", options.input, [&] { io::check_convertible(manifest); });
  Progress progress("converting");
  const uint64_t bytes = io::in_context("convert", options.output, [&] {
    if (io::is_torch_save(options.output)) return write_as_torch_save(options);
    return io::write_as_safetensors(weights, options.output, [&](uint64_t done, uint64_t total) {
      progress.show(done, total);
    });
  });
  for (const auto& entry : manifest.opaque) {
    print_error("posenc convert: skipped {}: {}\n", io::in_quotes(entry.name),
                io::in_quotes(entry.text));
  }
  if (const auto values = manifest.values.size() + manifest.more_values; values > 0) {
    print_error("posenc convert: skipped {} values that are not tensors\n", values);
  }
  print("{}: {} tensors, {}\n", options.output, manifest.tensors.size(), size_text(bytes));
}

void add_convert(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();
  auto* sub =
      app.add_subcommand("convert",
                         "Write the tensors of a file as safetensors, or as torch.save's file if "
                         "OUT ends in .pt or .pth. Dtypes are preserved; tied tensors are written "
                         "under each of their names.");
  sub->add_option("IN", options->input, kReadableFiles)->required()->check(input_path());
  sub->add_option("OUT", options->output, "file to write, any extension; replaced atomically")
      ->required()
      ->check(output_path());
  sub->footer("Example:\n  posenc convert model.pt model.safetensors");
  sub->callback([options] { convert_file(*options); });
}

const Command kConvert{6, add_convert};

}  // namespace
}  // namespace posenc::cli
