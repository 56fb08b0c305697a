#pragma once

#include <cstdint>
#include <string>

namespace pronounce {

/// Compares the model in a file with the dictionary that it was trained on, on the words that were
/// held out: prints the answers of both for the first `shown` of them, and the error rate on all.
/// Returns the exit status: 1 if the phoneme error rate is above `at_most` per cent, otherwise 0.
/// Throws for another dictionary.
int evaluate(const std::string& model, const std::string& dictionary, int64_t shown,
             double at_most);

}  // namespace pronounce
