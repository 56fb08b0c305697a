// posenc inspect: lists the contents of a weights file without running any code in it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/digests.h"
#include "cli/error.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "io/base/context.h"
#include "io/base/quote.h"
#include "io/manifest/open_weights.h"
#include "posenc/io/manifest.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  std::string file;
  bool json = false;
};

void print_json(const InspectOptions& options, const io::OpenWeights& weights) {
  const Manifest& manifest = weights.manifest;
  std::vector<std::string> hashes;
  {
    Progress progress("hashing");
    hashes = digests(weights, [&](uint64_t done, uint64_t of) { progress.show(done, of); });
  }
  auto tensors = Json::array();
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto& tensor = manifest.tensors[i];
    tensors.push_back({{"name", tensor.name},
                       {"dtype", dtype_name(tensor.dtype)},
                       {"shape", tensor.sizes},
                       {"sha256", hashes[i]}});
  }
  const Json all = {{"file", options.file},
                    {"format", format_name(manifest.format)},
                    {"tensors", std::move(tensors)}};
  fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_entries(const char* heading, const std::vector<ManifestEntry>& entries) {
  if (entries.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const auto& entry : entries) rows.push_back({shown(entry.name), io::printable(entry.text)});
  fmt::print("\n{}\n{}", heading, text_table(rows, 2));
}

void print_text(const InspectOptions& options, const io::OpenWeights& weights) {
  const Manifest& manifest = weights.manifest;
  fmt::print("{}: {}{}, {} tensors, {}\n", options.file, format_name(manifest.format),
             manifest.class_name.empty() ? "" : " of " + shown(manifest.class_name),
             manifest.tensors.size(), size_text(weights.total_bytes()));
  std::vector<std::vector<std::string>> rows;
  for (const auto& tensor : manifest.tensors) {
    rows.push_back({shown(tensor.name), dtype_name(tensor.dtype),
                    fmt::format("({})", fmt::join(tensor.sizes, ", "))});
  }
  fmt::print("{}", text_table(rows, 2));
  print_entries("values that are not tensors", manifest.values);
  if (manifest.more_values > 0) fmt::print("  and {} more\n", manifest.more_values);
  print_entries("skipped, not dense tensors", manifest.opaque);
  std::vector<ManifestEntry> metadata;
  for (const auto& [key, value] : manifest.metadata) metadata.push_back({key, value});
  print_entries("metadata", metadata);
}

void inspect_file(const InspectOptions& options) {
  const auto weights =
      io::in_context("read_manifest", options.file, [&] { return io::OpenWeights(options.file); });
  options.json ? print_json(options, weights) : print_text(options, weights);
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  auto* sub =
      app.add_subcommand("inspect",
                         "List the contents of a file of weights: names (the first 120 bytes of "
                         "each; --json prints them in full), dtypes, shapes and values. No code in "
                         "the file is run.");
  sub->add_option("FILE", options->file, kReadableFiles)->required()->check(input_path());
  sub->add_flag("--json", options->json,
                "print {file, format, tensors: [{name, dtype, shape, sha256}]}; the hash is of the "
                "contiguous little-endian bytes");
  sub->footer("Example:\n  posenc inspect --json model.pt");
  sub->callback([options] { inspect_file(*options); });
}

}  // namespace posenc::cli
