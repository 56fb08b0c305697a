// posenc-tokenize-speed TOKENIZER TEXT: a JSON object with what tests/benchmarks/tokenize_peers.py
// compares, in processor time of one thread: {"load": seconds, "offsets": MB/s, "ids": MB/s,
// "cold": MB/s with ids and offsets of a tokenizer that has met no word yet, "short": seconds for
// the line of 30 to 40 bytes that comes first, "long": MB/s with ids and offsets of all lines as
// one, "memory": bytes for each of its bytes, "decode": ids/s, "fingerprint": number}.
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tokenizers/definition/definition.h"
#include "tokenizers/pipeline/tokenizer_pipeline.h"

namespace {

using namespace posenc::text;

constexpr std::size_t kBatch = 1000;  // lines
constexpr int kRounds = 3;
constexpr int kShortCalls = 20'000;

std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <typename Work>
double seconds(const Work& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

// Encodes all lines in batches, and calls `use` with each batch.
template <typename Use>
void encode(const TokenizerPipeline& pipeline, const std::vector<std::string_view>& lines,
            bool offsets, const Use& use) {
  EncodeRequest request;
  request.requested = {offsets, false};
  EncodedRows rows;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    pipeline.encode(lines[i], std::nullopt, request, i, rows);
    if ((i + 1) % kBatch != 0 && i + 1 != lines.size()) continue;
    use(rows);
    rows.clear();
  }
}

}  // namespace

int main(int, char** arguments) {
  const std::string file = read(arguments[1]), text = read(arguments[2]);
  const std::vector<std::string_view> lines = lines_of(text);
  double load = 1e9;
  for (int i = 0; i < kRounds; ++i)
    load = std::min(load, seconds([&] { TokenizerPipeline pipeline(read_definition(file)); }));

  const TokenizerPipeline pipeline(read_definition(file));
  nlohmann::json result = {{"load", load}};
  const double size = static_cast<double>(text.size());
  // First of all, since the peak of the memory never falls.
  std::string one = text;
  std::replace(one.begin(), one.end(), '\n', ' ');
  const double before = peak_bytes();
  result["long"] = size / seconds([&] { encode(pipeline, {one}, true, [](auto&) {}); }) / 1e6;
  result["memory"] = (peak_bytes() - before) / size;
  for (const bool offsets : {true, false}) {
    double best = 1e9;
    for (int i = 0; i < kRounds; ++i)
      best = std::min(best, seconds([&] { encode(pipeline, lines, offsets, [](auto&) {}); }));
    result[offsets ? "offsets" : "ids"] = static_cast<double>(text.size()) / best / 1e6;
  }
  uint64_t fingerprint = 0;
  std::vector<std::vector<uint32_t>> batches;
  std::size_t count = 0;
  encode(pipeline, lines, true, [&](const EncodedRows& rows) {
    batches.push_back(rows.ids);
    count += rows.ids.size();
    for (std::size_t i = 0; i < rows.ids.size(); ++i) {
      fingerprint =
          (fingerprint * 31 + rows.ids[i] * 7 + rows.offsets[i].begin * 3 + rows.offsets[i].end) %
          2147483647;
    }
  });
  result["fingerprint"] = fingerprint;
  const double decode = seconds([&] {
    for (const auto& ids : batches) pipeline.decode(ids, true);
  });
  result["decode"] = static_cast<double>(count) / decode;
  const TokenizerPipeline fresh(read_definition(file));
  result["cold"] = size / seconds([&] { encode(fresh, lines, true, [](auto&) {}); }) / 1e6;
  const auto line = std::find_if(lines.begin(), lines.end(), [](std::string_view each) {
    return each.size() >= 30 && each.size() <= 40;
  });
  const std::vector<std::string_view> short_lines(kShortCalls, *line);
  result["short"] =
      seconds([&] { encode(pipeline, short_lines, true, [](auto&) {}); }) / kShortCalls;
  std::cout << result << std::endl;
}
