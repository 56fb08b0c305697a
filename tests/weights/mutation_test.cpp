// Real files of every format with random changes: the result must be a consistent manifest or a
// WeightsError, nothing else. The asan preset also checks the readers' memory accesses.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "fuzz/check.h"
#include "support/exhaustive.h"
#include "support/seed.h"
#include "weights/files.h"
#include "weights/manifest/shards.h"
#include "weights/manifest/single_file.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 2000;  // per file

// Applies one typical change by damage or an attacker.
void mutate(std::string& bytes, std::mt19937& random) {
  const auto at = [&] { return bytes.empty() ? 0 : random() % bytes.size(); };
  const auto count = [&] { return 1 + random() % 16; };
  if (bytes.empty()) bytes = "x";
  switch (random() % 8) {
    case 0: bytes[at()] = static_cast<char>(random()); break;
    case 1: bytes[at()] ^= static_cast<char>(1 << random() % 8); break;
    case 2: bytes.erase(at(), count()); break;
    case 3: bytes.insert(at(), count(), static_cast<char>(random())); break;
    case 4: bytes.resize(at()); break;
    case 5: bytes.insert(at(), bytes.substr(at(), count())); break;
    case 6: {  // an extreme number
      const auto offset = at();
      const char fill = "\x00\x7f\x80\xff"[random() % 4];
      for (auto i = offset; i < std::min(bytes.size(), offset + (1u << random() % 4)); ++i) {
        bytes[i] = fill;
      }
      break;
    }
    default: {  // a digit, as in JSON sizes and offsets
      const auto digit = bytes.find_first_of("0123456789", at());
      if (digit != std::string::npos) bytes[digit] = static_cast<char>('0' + random() % 10);
    }
  }
}

// Returns true if the bytes are read, false if they are rejected.
bool reads(const std::string& bytes) {
  const auto file = io::InputFile::of_bytes(bytes);
  try {
    if (io::looks_like_json(file)) {
      io::parse_index(bytes);
    } else {
      check_manifest(io::read_single_file(file), file);
    }
    return true;
  } catch (const WeightsError& error) {
    EXPECT_LT(std::string(error.what()).size(), 1000u);
    return false;
  }
}

std::vector<fs::path> real_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(POSENC_REAL_FILES)) {
    if (entry.path().filename() != "expected.json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Mutations, AreReadOrRefused) {
  const auto files = real_files();
  ASSERT_GT(files.size(), 10u) << "ctest makes them: reference.real_files";
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename().string());
    const auto original = read_bytes(path.string());
    ASSERT_TRUE(reads(original));
    std::mt19937 random(seed(original.size()));
    int refused = 0;
    for (int round = 0; round < kRounds; ++round) {
      auto bytes = original;
      for (auto changes = 1 + random() % 4; changes > 0; --changes) mutate(bytes, random);
      const auto start = std::chrono::steady_clock::now();
      try {
        refused += !reads(bytes);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "round " << round << ": " << error.what();
      }
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (exhaustive()) {
        EXPECT_LT(took.count(), 5.0) << "round " << round;
      }
    }
    EXPECT_GT(refused, kRounds / 10);  // some mutations only change data
  }
}

}  // namespace
}  // namespace posenc::testing
