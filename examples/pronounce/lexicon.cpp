#include "lexicon.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <utility>

#include "messages.h"

namespace pronounce {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// Not std::shuffle: the standard fixes the engine's numbers, but not how std::shuffle uses them.
void shuffle(std::vector<LexiconEntry>& entries, int64_t seed) {
  std::seed_seq seeds{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0u, 0u};
  std::mt19937 engine(seeds);
  for (std::size_t i = entries.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>((static_cast<uint64_t>(engine()) * i) >> 32);
    std::swap(entries[i - 1], entries[other]);
  }
}

}  // namespace

Lexicon read_lexicon(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail("{}: {}", path, std::strerror(errno));
  std::map<std::string, std::vector<Phonemes>> words;
  Lexicon lexicon;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.rfind(";;;", 0) == 0) continue;
    std::istringstream parts(line.substr(0, line.find('#')));
    std::string word;
    if (!(parts >> word)) continue;
    word = lower(word.substr(0, word.find('(')));
    Phonemes phonemes;
    for (std::string phoneme; parts >> phoneme;) {
      while (phoneme.size() > 1 && std::isdigit(static_cast<unsigned char>(phoneme.back()))) {
        phoneme.pop_back();
      }
      phonemes.push_back(phoneme);
    }
    if (phonemes.empty()) fail("{}:{}: a word must have phonemes", path, number);
    if (!std::all_of(word.begin(), word.end(), is_letter) || word.empty()) {
      ++lexicon.left_out;
      continue;
    }
    auto& known = words[word];  // without stress, two pronunciations may be equal
    if (std::find(known.begin(), known.end(), phonemes) == known.end()) known.push_back(phonemes);
  }
  if (file.bad()) fail("{}: {}", path, std::strerror(errno));
  if (words.empty()) fail("{}: a dictionary must have words of a-z", path);
  for (auto& [word, ways] : words) lexicon.entries.push_back({word, std::move(ways)});
  return lexicon;
}

Split hold_out(const Lexicon& lexicon, int64_t held_out, int64_t seed) {
  const auto count = static_cast<int64_t>(lexicon.entries.size());
  if (held_out < 1 || held_out >= count) {
    fail("--held-out must be at least 1 and less than the number of words, {}. Got {}", count,
         held_out);
  }
  auto shuffled = lexicon.entries;
  shuffle(shuffled, seed);
  Split split;
  split.held_out.assign(shuffled.begin(), shuffled.begin() + held_out);
  split.train.assign(shuffled.begin() + held_out, shuffled.end());
  return split;
}

}  // namespace pronounce
