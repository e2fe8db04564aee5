"""A tokenizer that needs no training: a token a byte, and the control tokens of the chat formats."""

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def byte_tokenizer() -> Tokenizer:
    """A token a byte, and the control tokens."""
    alphabet = {symbol: index for index, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(alphabet, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in ("<|im_start|>", "<|im_end|>", "<|end|>")])
    return tokenizer


TOKENIZER = byte_tokenizer()
